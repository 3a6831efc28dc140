"""What the site needs beside its pages: mermaid for its diagrams, which scripts/docs fetches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

MERMAID = Path(__file__).parents[2] / "build" / "mermaid" / "package" / "dist" / "mermaid.min.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Without mermaid a diagram is shown as its text: the theme would fetch mermaid from another host."""
    if not MERMAID.exists():
        config.mdx_configs["pymdownx.superfences"]["custom_fences"] = []
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """It lies elsewhere than the pages."""
    if MERMAID.exists():
        files.append(File.generated(config, "assets/mermaid.js", abs_src_path=str(MERMAID)))
    return files


def on_page_context(context: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Three megabytes, for pages that have a diagram."""
    context["has_diagram"] = 'class="mermaid"' in context["page"].content
    return context
