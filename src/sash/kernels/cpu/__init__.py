"""The back end for CPUs: a generated module's text to machine code through numba and LLVM, cached on disk.

numba and llvmlite are imported here only, and only when something is compiled.
"""
