"""Weighted least squares on the device: XᵀWX, its Cholesky factor, and the solution."""

from __future__ import annotations

import numpy as np

import cudadrv
from cudadrv.errors import RuntimeDependencyUnavailable


def main() -> None:
    rng = np.random.default_rng(0)
    n, p = 2000, 8
    x, beta = rng.standard_normal((n, p)), rng.standard_normal(p)
    w, y = rng.uniform(0.5, 2.0, n), x @ beta

    stream = cudadrv.cuda_context_for(0).new_stream()
    algebra = cudadrv.blas.LinearAlgebra.for_stream(stream)
    design, weights = stream.to_device(x), stream.to_device(w)
    gram, solution = stream.empty((p, p), np.float64), stream.empty(p, np.float64)
    try:
        algebra.xtwx(design, weights, gram)
    except RuntimeDependencyUnavailable as error:
        print(error)
        return
    algebra.gemv(design, stream.to_device(w * y), solution, transpose=True)
    algebra.potrf(gram)
    algebra.potrs(gram, solution)
    assert np.allclose(stream.to_host(solution), beta)

    try:
        algebra.potrf(stream.to_device(np.diag([1.0, -1.0])))
    except cudadrv.blas.NotPositiveDefiniteError as error:
        print(error)


if __name__ == "__main__":
    main()
