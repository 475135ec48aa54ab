"""``workload:``: what is asked of a deployment, as types."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan.scenario.fields import Count, Name, Seconds, Share, Tokens, Word
from kvplan.scenario.traffic_fields import Columns, Daily, Lengths, Rate, Risk, Speed

Scope = Literal["global", "tenant", "user", "session"]
DEFAULT_RISK = 0.001


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Prefix(_Part):
    """Tokens that many requests start with, after those of the prefixes before it."""

    name: Name = Field(description="What is shared: system prompt, tools, a document.")
    tokens: Tokens = Field(description="Its length.")
    scope: Scope = Field(
        "tenant", description="Who shares it: everybody, a tenant, a user, one session."
    )
    version: Word | None = Field(
        None, description="Changes whenever the text does, so that old blocks are not counted on."
    )
    distinct: Count = Field(1, description="Different ones of it that are resident at once.")
    tenants: Count | None = Field(None, description="Tenants whose requests start with it.")
    share: Share | None = Field(None, description="Requests that start with it: 80%; all of them.")
    change: Seconds | None = Field(None, description="How often a new version comes: 24h.")
    personal_data: bool = Field(
        default=False, description="It holds data about a person, such as a profile or a history."
    )

    @property
    def copies(self) -> int:
        """Different ones at once; what a tenant shares is there once for each of them."""
        return self.distinct if self.scope == "global" else max(self.distinct, self.tenants or 1)


class Sessions(_Part):
    """Conversations whose cache is kept between turns."""

    turns: Annotated[int, Field(ge=1, le=500)] | None = Field(
        None, description="Turns of a conversation; lengths are one message and one answer."
    )
    ttl: Seconds | None = Field(None, description="How long an idle session keeps its cache.")
    count: Count | None = Field(None, description="Idle sessions that are kept at once.")
    tokens: Tokens | None = Field(None, description="Tokens that one of them keeps.")


class Workload(_Part):
    """What is asked of the deployment."""

    input_tokens: Tokens | None = Field(None, description="Tokens of a prompt, at most.")
    output_tokens: Tokens | None = Field(None, description="Tokens of an answer, at most.")
    lengths: Lengths | None = Field(
        None, description="Prompts, a slash, outputs, as kvplan traffic takes them."
    )
    trace: Word | None = Field(None, description="A recorded trace (a path from this file).")
    trace_columns: Columns | None = Field(
        None, description="Columns of the trace, where their names don't say it."
    )
    tokens_p99: Tokens | None = Field(
        None, description="Prompt and answer together that 99 % of requests stay below."
    )
    concurrency: Count | None = Field(None, description="Requests at once.")
    rate: Rate | None = Field(None, description="Requests that come, over a whole day: 5/s.")
    users: Count | None = Field(None, description="Users who wait for an answer, then think.")
    think: Seconds | None = Field(None, description="How long a user thinks.")
    daily: Daily | None = Field(None, description="The day: peak=2.5, or 24 weights.")
    decode_rate: Speed | None = Field(
        None, description="Tokens a second that one request generates."
    )
    prefill_rate: Speed | None = Field(
        None, description="Tokens a second of one request's prompt; at once where left out."
    )
    risk: Risk | None = Field(
        None, description="Share of the time that the cache may be too small; 0.1% if left out."
    )
    seconds_per_request: Seconds | None = Field(
        None, description="How long a request is held; with a price it gives cost_per_request."
    )
    prefixes: tuple[Prefix, ...] = Field((), description="What requests share, front first.")
    sessions: Sessions | None = Field(None, description="What is kept between turns.")

    @property
    def says_lengths(self) -> bool:
        """Whether requests are unlike one another: a distribution, a trace, or turns that grow."""
        return bool(self.lengths or self.trace or (self.sessions and self.sessions.turns))

    @property
    def says_demand(self) -> bool:
        """Whether it is said how requests come."""
        return self.rate is not None or self.users is not None
