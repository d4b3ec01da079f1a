"""Compiled loops: every numba function of the package.

The functions know nothing of kernel families and of labels. They read float64 and int64 arrays,
write into arrays that the caller owns, release the GIL, and run in one thread: threads belong to
the scheduler above.
"""
