"""Window aggregation on devices: the primitives of the Slider paper, and BLOCK-SCAN, which goes beyond them.

One file each, with its card. A kernel is written in the vocabulary of :mod:`sash.kernels.vocabulary`, as those for the CPU are. Kernels of
*groups* share memory and barriers, for GPUs; on a CPU device each item has a share of the work and a group is one item, which is what its
cores do best, and kernels of :mod:`sash.algorithms` serve there as they are.
"""
