"""What one does with caplens, as functions: score captions, compare systems, evaluate metrics, perturb captions."""

from caplens.api.calibrating import calibrate
from caplens.api.checking import check
from caplens.api.comparing import compare, crossmodal
from caplens.api.filtering import drift, filter_captions
from caplens.api.fitting import fit_mid
from caplens.api.judging import agreement, bench, bench_many
from caplens.api.reporting import write_report
from caplens.api.scoring import robustness, score
from caplens.api.translating import score_via_english, translate
from caplens.benchmarks.leaderboard import build_leaderboard

__all__ = [
    "agreement",
    "bench",
    "bench_many",
    "build_leaderboard",
    "calibrate",
    "check",
    "compare",
    "crossmodal",
    "drift",
    "filter_captions",
    "fit_mid",
    "robustness",
    "score",
    "score_via_english",
    "translate",
    "write_report",
]
