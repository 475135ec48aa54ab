"""What is known of the machine that a plan is for: its profile, what was read of its devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kvplan.engines.base import Setup
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.plan import Plan, Reason


def with_profile(setup: Setup, profile: HostProfile | None, engine: str) -> Setup:
    """The setup with the profile, if it is one of that engine and device."""
    if profile is None or not profile.is_for(engine, setup.gpu.id):
        return setup
    return replace(setup, profile=profile)


def with_profile_note(plan: Plan, profile: HostProfile | None, setup: Setup) -> Plan:
    """Says what a profile that was given is worth."""
    if profile is None:
        return plan
    return plan.model_copy(update={"reasons": (*plan.reasons, _note(profile, setup))})


def with_device_notes(plan: Plan, devices: Sequence[GpuSpec]) -> Plan:
    """Says what was read of this machine's devices; nothing of a device that was only named."""
    read = [gpu for gpu in devices if gpu.in_use and gpu.vendor != "cpu"]
    reasons = tuple(_device_notes(plan, read)) if read else ()
    return plan.model_copy(update={"reasons": (*plan.reasons, *reasons)}) if reasons else plan


def _device_notes(plan: Plan, read: Sequence[GpuSpec]) -> Iterator[Reason]:
    seen = sum(len(gpu.in_use) for gpu in read)
    if plan.gpu.count > seen:
        yield Reason(
            code="fewer_devices",
            message=f"The plan is for {plan.gpu.count} GPUs; programs see {seen} here.",
            hint="Plan for fewer, or show more with CUDA_VISIBLE_DEVICES.",
        )
    for gpu in read:
        for note in gpu.notes:
            yield Reason(code="device_note", message=f"{gpu.id}: {note}")


def _note(profile: HostProfile, setup: Setup) -> Reason:
    starts = f"{profile.starts} start{'' if profile.starts == 1 else 's'}"
    if setup.profile is None:
        return Reason(
            code="profile_not_used",
            message=(
                f"The profile rests on {profile.engine} on {', '.join(profile.gpus)}; nothing of "
                "it was taken for this plan."
            ),
            hint="Measure a start on the machine that is planned for: kvplan calibrate.",
        )
    return Reason(
        code="profile_used",
        message=(
            f"Memory beside the cache is corrected by {starts} of this host; the range is still "
            "that of public starts."
        ),
    )
