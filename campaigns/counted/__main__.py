"""The launches that run under ncu: `python -m campaigns.counted --launch [KERNEL...]`."""

from __future__ import annotations

import argparse

import cudadrv

from .launching import launches


def main() -> None:
    """Launch the named kernels, or all of them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--launch", nargs="*", default=[], metavar="KERNEL")
    names = set(parser.parse_args().launch)
    for name, launch in launches(cudadrv.cuda_context_for(0)):
        if not names or name in names:
            launch()


if __name__ == "__main__":
    main()
