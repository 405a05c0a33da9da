"""Run one campaign: `python -m campaigns NAME --seconds N --seed S`."""

from __future__ import annotations

import argparse
import faulthandler
import os
import sys
import time

import cudadrv

from .catalogue import CAMPAIGNS, run


def main() -> int:
    """Run a campaign; print its cases and failures; exit with 1 if a case failed."""
    parser = argparse.ArgumentParser(
        prog="python -m campaigns", description=main.__doc__, allow_abbrev=False, add_help=False
    )
    parser.add_argument("name", nargs="?", metavar="NAME", choices=CAMPAIGNS, help="the campaign")
    parser.add_argument("--list", action="store_true", help="list the campaigns")
    parser.add_argument("--seconds", type=float, default=60.0, help="about how long (60)")
    parser.add_argument("--seed", type=int, default=1, help="another order of the cases (1)")
    parser.add_argument("-h", "--help", action="store_true", help="show this, or options of NAME")
    given, options = parser.parse_known_args()
    if given.list:
        for name, campaign in CAMPAIGNS.items():
            needs = f" (needs {campaign.needs})" if campaign.needs else ""
            print(f"{name:16} {campaign.about}{needs}")
        return 0
    if given.name is None:
        parser.print_help()
        return 0 if given.help else 2
    campaign = CAMPAIGNS[given.name]
    if given.help:
        parser.print_help()
        options = ["--help"]
    if options and not campaign.has_options:
        if given.help:
            return 0
        parser.error(f"{given.name} has no option {' '.join(options)}")
    _choose_driver()
    faulthandler.enable()
    begin = time.monotonic()
    report = run(given.name, given.seconds, given.seed, *options)
    print(f"{given.name}, seed {given.seed}, {time.monotonic() - begin:.0f} s")
    print(report, flush=True)
    if report.failures:
        seconds = f"--seconds {given.seconds:g} --seed {given.seed}"
        print("to repeat:", " ".join(["python -m campaigns", given.name, seconds, *options]))
    return 1 if report.failures else 0


def _choose_driver() -> None:
    """Take the emulator with two devices where there is no GPU and nothing was chosen."""
    if "CUDADRV_DRIVER" in os.environ:
        return
    try:
        found = bool(cudadrv.list_devices())
    except cudadrv.DriverNotFoundError:
        found = False
    if not found:
        os.environ["CUDADRV_DRIVER"] = "emulator:2"


if __name__ == "__main__":
    sys.exit(main())
