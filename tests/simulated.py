"""Pools and workloads that several tests of the simulation use."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from kvplan.engines.base import BlockGroup, BlockPool
from kvplan.planning.simulate.memory import Memory
from kvplan.planning.simulate.recorder import Limits, Recorder
from kvplan.planning.simulate.run import Names, Setting, simulate
from kvplan.planning.simulate.scheduler import Scheduler
from kvplan.planning.simulate.service import Linear, StepTimes
from kvplan.planning.simulate.tiers import Tier, Tiers
from kvplan.simulation import Simulation
from kvplan.workloads.requests import ContentBlocks, PrefixUse, Request

NAMES = Names("model", "gpu", "engine", seed=1)
FULL = BlockGroup("all", 4)
LONGEST = 10_000
GROUPS = {
    "full": (FULL,),
    "window beside full": (BlockGroup("window", 4, span=10, most=9), FULL),
    "window alone": (BlockGroup("window", 4, span=6, most=8),),
    "unlike blocks": (BlockGroup("all", 8), BlockGroup("window", 4, span=5, most=8)),
    "chunks": (FULL, BlockGroup("chunk", 4, span=16, most=8)),
    "states": (FULL, BlockGroup("none", 4, fixed=2)),
}


def pool(
    blocks: int,
    groups: tuple[BlockGroup, ...] = (FULL,),
    *,
    sequences: int = 16,
    batch_tokens: int = 16,
    admits_whole: bool = True,
    caches_prefixes: bool = True,
) -> BlockPool:
    return BlockPool(
        blocks=blocks,
        block_bytes=1024,
        groups=groups,
        sequences=sequences,
        batch_tokens=max(batch_tokens, sequences),
        caches_prefixes=caches_prefixes and all(group.keeps != "none" for group in groups),
        admits_whole=admits_whole,
    )


def run(
    requests: Iterable[Request],
    of: BlockPool,
    times: StepTimes | None = None,
    *,
    tiers: tuple[Tier, ...] = (),
    longest: int = LONGEST,
    limits: Limits | None = None,
) -> Simulation:
    """The whole simulation; every step takes a second where nothing else is said."""
    setting = Setting(of, times or Linear(step_s=1.0), longest, tiers, limits=limits or Limits())
    return simulate(requests, setting, NAMES)


def scheduler(
    requests: Iterable[Request], of: BlockPool, *, tiers: tuple[Tier, ...] = ()
) -> tuple[Scheduler, Memory, Recorder]:
    """The same, to be moved step by step."""
    recorder = Recorder(Limits())
    memory = Memory(of, Tiers(tiers, len(of.groups), of.block_bytes))
    made = Scheduler(memory, Linear(step_s=1.0), recorder, longest=LONGEST)
    made.start(iter(requests))
    return made, memory, recorder


@st.composite
def workloads(draw: st.DrawFn, *, shared: bool = True, pauses: bool = False) -> list[Request]:
    """A few dozen small requests, some of which share prefixes, blocks or conversations.

    With ``pauses``, turns of some conversations come after the answers before them.
    """
    pause_s = draw(st.sampled_from((0.0, 4.0))) if pauses else None
    arrival, requests = 0.0, []
    talks: dict[str, tuple[int, int]] = {}
    for _ in range(draw(st.integers(1, 25))):
        arrival += draw(st.sampled_from((0.0, 0.5, 3.0)))
        prompt, output = draw(st.integers(1, 40)), draw(st.integers(1, 30))
        kind = draw(st.integers(0, 3)) if shared else 0
        if kind == 1:
            use = PrefixUse(draw(st.sampled_from("ab")), min(prompt, draw(st.integers(1, 20))))
            requests.append(Request(arrival, prompt, output, use))
        elif kind == 2:
            ids = tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=5)))
            requests.append(Request(arrival, prompt, output, blocks=ContentBlocks(ids, 8)))
        elif kind == 3:
            name = draw(st.sampled_from("xy"))
            turn, told = talks.get(name, (0, 0))
            longer = told + prompt
            requests.append(
                Request(arrival, longer, output, session=name, turn=turn, pause_s=pause_s)
            )
            talks[name] = turn + 1, told + prompt + output
        else:
            requests.append(Request(arrival, prompt, output))
    return requests
