"""The annotations of the package, checked without a type checker."""

import inspect
import pathlib
import typing
import unittest

import rota

PACKAGE = pathlib.Path(rota.__file__).parent


def public_members(owner):
    """The public functions and properties that a class or a module defines itself, by name."""
    for name, member in vars(owner).items():
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, property):
            member = member.fget
        if inspect.isfunction(member):
            yield f"{owner.__name__}.{name}", member


class TypesTest(unittest.TestCase):
    def test_the_package_says_that_it_is_typed(self):
        self.assertTrue((PACKAGE / "py.typed").is_file())

    def test_every_file_compiles(self):
        for file in PACKAGE.glob("*.py"):
            compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True)

    def test_every_public_name_is_there(self):
        for name in rota.__all__:
            self.assertTrue(hasattr(rota, name), name)

    def test_every_public_function_has_annotations_that_can_be_resolved(self):
        checked = 0
        for name in rota.__all__:
            value = getattr(rota, name)
            if inspect.isclass(value):
                members = list(public_members(value))
            else:
                members = [(name, value)] if inspect.isfunction(value) else []
            for path, function in members:
                hints = typing.get_type_hints(function)
                for parameter in inspect.signature(function).parameters.values():
                    if parameter.name not in ("self", "cls"):
                        self.assertIn(parameter.name, hints, f"{path} does not annotate {parameter.name}")
                self.assertIn("return", hints, f"{path} does not annotate what it returns")
                checked += 1
        self.assertGreater(checked, 20)

    def test_private_functions_of_the_package_are_annotated_too(self):
        modules = [value for value in vars(rota).values() if inspect.ismodule(value)]
        self.assertEqual(len(modules), len(list(PACKAGE.glob("_[a-z]*.py"))))
        for module in modules:
            for value in vars(module).values():
                if inspect.isfunction(value) and value.__module__ == module.__name__:
                    self.assertIn("return", typing.get_type_hints(value), value.__qualname__)


if __name__ == "__main__":
    unittest.main()
