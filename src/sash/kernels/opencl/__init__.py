"""The back end for devices: a generated module's text as OpenCL C, built and cached per device and driver.

The text is the one that :mod:`sash.kernels.cpu` hands to numba, so an aggregate has one definition and an algorithm is written once.
``translator`` turns functions into C (``c_types``, ``c_operators`` and ``c_functions`` have the rules), ``device_module`` adds the entry
that OpenCL calls, ``programs`` builds and caches, ``devices`` lists what there is. pyopencl is imported here only, and only when it is
used.
"""
