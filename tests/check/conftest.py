# SPDX-License-Identifier: BSD-3-Clause
"""The plugin of the package, which is not installed here."""
pytest_plugins = ["viaduct.pytest_plugin", "pytester"]
