"""Hooks of mkdocs that add mermaid, which scripts/docs fetches, to pages with diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

MERMAID = Path(__file__).parents[2] / "build" / "mermaid" / "package" / "dist" / "mermaid.min.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Show diagrams as text if mermaid is missing, because the theme would fetch it from another host."""
    if not MERMAID.exists():
        config.mdx_configs["pymdownx.superfences"]["custom_fences"] = []
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add mermaid to the files of the site."""
    if MERMAID.exists():
        files.append(File.generated(config, "assets/mermaid.js", abs_src_path=str(MERMAID)))
    return files


def on_page_context(context: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Load mermaid, which has three megabytes, only on pages with a diagram."""
    context["has_diagram"] = 'class="mermaid"' in context["page"].content
    return context
