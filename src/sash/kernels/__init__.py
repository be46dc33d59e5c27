"""From an aggregate's and an algorithm's own Python functions to machine code.

``sources`` reads functions, ``words`` and ``lane_words`` write an aggregate out in the algorithms' ``vocabulary``, ``generate`` puts both
into the text of one module. Two back ends take that module: :mod:`sash.kernels.cpu` (``compiled(module)``) and :mod:`sash.kernels.opencl`
(``built(device, device_module(module))``); each returns a kernel that is called with one argument for each of ``module.arguments``.
"""
