"""Every rule there is, in the order of their codes. A new rule is one file and one row here."""

from __future__ import annotations

from kvplan.scenario.rules import (
    context_at_maximum,
    contiguous_reservation,
    engine_unpinned,
    fp8_kv_unsupported,
    headroom_below_uncertainty,
    max_num_seqs_too_high,
    no_load,
    personal_data_shared,
    prefix_across_tenants,
    prefix_without_version,
    sessions_without_ttl,
    tp_beyond_kv_heads,
    utilization_too_high,
)
from kvplan.scenario.rules.base import Rule

RULES: tuple[Rule, ...] = (
    prefix_across_tenants.RULE,
    personal_data_shared.RULE,
    prefix_without_version.RULE,
    context_at_maximum.RULE,
    no_load.RULE,
    max_num_seqs_too_high.RULE,
    tp_beyond_kv_heads.RULE,
    fp8_kv_unsupported.RULE,
    headroom_below_uncertainty.RULE,
    sessions_without_ttl.RULE,
    engine_unpinned.RULE,
    contiguous_reservation.RULE,
    utilization_too_high.RULE,
)
# Findings that need more than one scenario: the lock, the baseline, a pool. (code, name, summary)
COMPARED: tuple[tuple[str, str, str], ...] = (
    ("KV201", "lock-drift", "Facts or figures differ from those in the lock."),
    ("KV202", "not-in-lock", "The scenario is not in the lock."),
    ("KV203", "fewer-than-baseline", "Fewer requests, or more money, than in the baseline."),
    ("KV204", "pool-overcommitted", "The scenarios of a pool take more GPUs than it has."),
)
