"""Lean compiling: numba and LLVM do only the work that kernels need.

numba compiles a subroutine like any other function. LLVM optimises it and generates machine code that nothing calls.
The optimised body is then linked into each caller and optimised again. These classes keep a subroutine as unoptimised
bitcode, and only kernels become machine code. A kernel's functions are not optimised one by one: LLVM optimises the
whole module after all subroutines are linked in.

The classes affect only the functions that they compile, not other users of numba in the process.

The classes override private methods of numba. They were tested with the sources listed in `TESTED`. With any other
sources, numba compiles kernels the standard way, which takes longer and gives the same results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding
from numba.core import codegen, compiler, typed_passes
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment

FORM: Final = "lean 1"
"""Version of the storage format of compiled functions."""
TESTED: Final = frozenset(
    {
        "a954fba1c50a2b7d4508120cd2b81c71b3221ba48472a94564b25419e46e1059",  # 0.62
        "9442badb0e38a8f143f2816134da5099d127a7b5ef397533add37b6490df4b0a",  # 0.68; 0.63 to 0.67 have the same sources
    }
)
"""Digests of the numba sources with which lean compiling was tested."""
_BITCODE: Final = "lance_duck bitcode"
_ENVIRONMENT: Final = "_ZN08NumbaEnv"
_compiled: Final[Any] = compiler.CompileResult
_compile_result: Final[Any] = compiler.compile_result
_typed: Final[Any] = typed_passes
_library: Final[Any] = codegen.JITCodeLibrary
_compiler: Final[Any] = compiler.Compiler
_builder: Final[Any] = compiler.DefaultPassBuilder
_pass_manager: Final[Any] = PassManager
_register: Final[Any] = register_pass
_environment: Final[Any] = lookup_environment


def digest_of_numba() -> str:
    """Return the digest of the overridden numba modules, or "" if their sources are missing."""
    digest = hashlib.sha256()
    modules: tuple[Any, ...] = (codegen, compiler, typed_passes)
    try:
        for module in modules:
            digest.update(Path(module.__file__).read_text(encoding="utf-8").encode())
    except (OSError, UnicodeDecodeError):
        return ""
    return digest.hexdigest()


@cache
def is_tested() -> bool:
    """Return whether lean compiling was tested with the installed numba."""
    return digest_of_numba() in TESTED


class LeanLibrary(_library):  # type: ignore[misc]
    """The code of one function. It is optimised only after its subroutines are linked in."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = str(self.codegen.target_data)


class KernelLibrary(LeanLibrary):
    """A kernel's code, optimised together with its subroutines, and its machine code."""

    def _finalize_specific(self) -> None:
        """Load the machine code and set the subroutines' environments."""
        super()._finalize_specific()
        for variable in self._final_module.global_variables:
            name = variable.name
            environment = _environment(name) if name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self.codegen.set_env(name, environment)


class SubroutineLibrary(LeanLibrary):
    """The bitcode of a subroutine and the subroutines that it calls."""

    def _optimize_final_module(self) -> None:
        """Do nothing: optimisation happens in the kernel's library."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return the name, kind and bitcode."""
        return self.name, _BITCODE, self._get_module_for_linking().as_bitcode()

    def load(self, bitcode: bytes) -> None:
        """Load bitcode from `serialize_using_object_code`."""
        self._final_module = llvmlite.binding.parse_bitcode(bitcode)
        self._finalize_final_module()


@_register(mutates_CFG=True, analysis_only=False)
class LowerSubroutine(_typed.NativeLowering):  # type: ignore[misc]
    """The numba pass that generates LLVM code, without machine code."""

    _name = "lance_duck_lower_subroutine"

    def run_pass(self, state: Any) -> bool:
        """Lower a subroutine and register its bitcode for callers."""
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        descriptor, call_helper, _, environment = lowered
        entry = object()
        state.targetctx.insert_user_function(entry, descriptor, [state.library])
        state["cr"] = type(lowered)(descriptor, call_helper, entry, environment)
        return True


class KernelCompiler(_compiler):  # type: ignore[misc]
    """The kernel compiler."""

    library: type[Any] = KernelLibrary
    lower: type[Any] = _typed.NativeLowering

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline. The pipeline uses a lean library if the installed numba was tested."""
        if not is_tested():
            return list(super().define_pipelines())
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        passes = _pass_manager("lance_duck")
        passes.passes += _builder.define_untyped_pipeline(state).passes
        passes.passes += _builder.define_typed_pipeline(state).passes
        for each, text in _builder.define_nopython_lowering_pipeline(state).passes:
            passes.add_pass(self.lower if each is _typed.NativeLowering else each, text)
        passes.finalize()
        return [passes]


class SubroutineCompiler(KernelCompiler):
    """The subroutine compiler."""

    library = SubroutineLibrary
    lower = LowerSubroutine


def rebuilt(target: Any, reduced: Iterable[Any]) -> Any:
    """Rebuild a `CompileResult` from the output of `_reduce`.

    Returns None for bitcode if the installed numba was not tested.
    """
    library, descriptor, environment, signature, _mode, _lifted, _annotation, reload, environments = reduced
    name, kind, data = library
    if kind != _BITCODE:
        return _compiled._rebuild(target, *reduced)
    if not is_tested():
        return None
    for step in reload:
        step()
    bitcode = SubroutineLibrary(target.codegen(), name)
    bitcode.load(data)
    return _compile_result(
        target_context=target,
        typing_context=target.typing_context,
        library=bitcode,
        environment=environment,
        entry_point=object(),
        fndesc=descriptor,
        type_annotation=None,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload,
        referenced_envs=environments,
    )
