"""What one does with caplens, as functions: score captions, compare systems, evaluate metrics, perturb captions."""

from caplens.api.calibrating import calibrate
from caplens.api.captioning import caption
from caplens.api.checking import check
from caplens.api.checking_app import CheckingApp
from caplens.api.comparing import compare, crossmodal
from caplens.api.filtering import drift, filter_captions
from caplens.api.fitting import fit_mid
from caplens.api.judging import agreement, bench, bench_many
from caplens.api.reporting import write_report
from caplens.api.scoring import robustness, score
from caplens.api.selecting import select_images
from caplens.api.studies import (
    analyze_study,
    create_study,
    export_study,
    forget_rater,
    open_study,
    plan_study,
    study_server,
    study_status,
)
from caplens.api.translating import score_via_english, translate
from caplens.benchmarks.leaderboard import build_leaderboard
from caplens.partitions import filter_partitions, plan_job, score_partitions

__all__ = [
    "CheckingApp",
    "agreement",
    "analyze_study",
    "bench",
    "bench_many",
    "build_leaderboard",
    "calibrate",
    "caption",
    "check",
    "compare",
    "create_study",
    "crossmodal",
    "drift",
    "export_study",
    "filter_captions",
    "filter_partitions",
    "fit_mid",
    "forget_rater",
    "open_study",
    "plan_job",
    "plan_study",
    "robustness",
    "score",
    "score_partitions",
    "score_via_english",
    "select_images",
    "study_server",
    "study_status",
    "translate",
    "write_report",
]
