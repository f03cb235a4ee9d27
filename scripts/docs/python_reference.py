"""Pages of the Python modules: signatures and docstrings, read without importing anything."""

from __future__ import annotations

import ast
import html
from pathlib import Path

MODULES = [
    "isobit", "isobit.torch", "isobit.torch.distributed", "isobit.jax", "isobit.cupy", "isobit.transformers",
    "isobit.trl", "isobit.verl", "isobit.vllm", "isobit.liger", "isobit.rl_kernel", "isobit.pi05",
]  # fmt: skip


def _file_of(root: Path, module: str) -> Path:
    path = root / "python" / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _names(tree: ast.Module) -> list[str]:
    """__all__, or every public function and class."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return [
        node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_"
    ]


def _definition(root: Path, module: str, name: str):
    """The function or class that a module means by a name, wherever it stands."""
    path = _file_of(root, module)
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
                    package = package[: len(package) - node.level + 1]
                    return _definition(root, ".".join([*package, node.module or ""]).strip("."), alias.name)
    return None


def _signature(node, name: str) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {name}({', '.join(map(ast.unparse, node.bases))})"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    text = f"{name}({ast.unparse(node.args)}){returns}"
    return text if len(text) < 100 else text.replace(", ", ",\n    ")


def _doc(text: str) -> str:
    return f'<pre class="doc">{html.escape(text)}</pre>'


def _members(node: ast.ClassDef) -> list[str]:
    """Fields with their comments are not in the tree; methods are."""
    parts = []
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and (child.name[0] != "_" or child.name == "__init__"):
            text = ast.get_docstring(child)
            parts.append(f"<h4><code>{html.escape(_signature(child, child.name))}</code></h4>")
            parts.append(_doc(text) if text else "")
        elif isinstance(child, ast.AnnAssign):
            parts.append(f"<p><code>{html.escape(ast.unparse(child))}</code></p>")
    return parts


def pages(root: Path) -> dict[Path, tuple[str, str]]:
    """Page -> (title, HTML). A public name without a docstring is an error."""
    found, index = {}, []
    for module in MODULES:
        tree = ast.parse(_file_of(root, module).read_text())
        page = Path("api/python") / f"{module}.html"
        body = [f"<h1>{module}</h1>", _doc(ast.get_docstring(tree) or "")]
        summary = (ast.get_docstring(tree) or "").split("\n\n")[0]
        index.append(f'<h2><a href="python/{module}.html">{module}</a></h2><p>{html.escape(summary)}</p><ul>')
        for name in _names(tree):
            node = _definition(root, module, name)
            if node is None:
                continue
            text = ast.get_docstring(node)
            if not text:
                raise ValueError(f"{module}.{name}: expected a docstring")
            body.append(f'<h2 id="{name}"><code>{name}</code></h2>')
            body.append(f'<pre class="signature">{html.escape(_signature(node, name))}</pre>')
            body.append(_doc(text))
            if isinstance(node, ast.ClassDef):
                body += _members(node)
            index.append(f'<li><a href="python/{module}.html#{name}"><code>{name}</code></a></li>')
        index.append("</ul>")
        found[page] = (module, "\n".join(body))
    found[Path("api/python.html")] = ("Python reference", "<h1>Python reference</h1>" + "\n".join(index))
    return found
