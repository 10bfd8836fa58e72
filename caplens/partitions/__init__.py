"""Scoring what is too large for one file and one process: partition by partition, on this machine or on the nodes of a cluster.

Each partition of the input becomes a file of scores and a manifest, written whole or not at all, so that a killed job goes on
where it stopped. Corpus scores and intervals are computed from the sums in the manifests.
"""

from caplens.partitions.filtering import filter_partitions
from caplens.partitions.job import score_partitions
from caplens.partitions.planning import plan_job

__all__ = ["filter_partitions", "plan_job", "score_partitions"]
