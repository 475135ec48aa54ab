"""`kvplan schema`: JSON Schemas, for editors and validators."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from kvplan.cli import flags


def schema(
    what: Annotated[
        Literal["scenario", "plan", "record", "prices"],
        typer.Argument(
            metavar="scenario|plan|record|prices",
            help="scenario: what kvplan check reads; plan: what kvplan size --format json writes;"
            " record: a line that kvplan validate reads; prices: what kvplan fit --prices reads.",
            show_default=False,
        ),
    ],
    *,
    output: flags.Output = None,
) -> None:
    """Print the JSON Schema of a file or a result."""
    import json

    from kvplan.cli.output import write

    write(json.dumps(_schema(what), indent=2) + "\n", output)


def _schema(what: str) -> dict[str, Any]:
    if what == "scenario":
        from kvplan.scenario.json_schema import json_schema

        return json_schema()
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if what == "plan":
        from kvplan.plan import Plan

        return {**draft, **Plan.model_json_schema(by_alias=True, mode="serialization")}
    if what == "prices":
        from kvplan.fit_prices import PriceList

        return {**draft, **PriceList.model_json_schema(by_alias=True)}
    from kvplan.measurement import Measurement

    return {**draft, **Measurement.model_json_schema(by_alias=True)}
