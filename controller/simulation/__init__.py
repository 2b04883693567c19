# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine, what happens in the scene, the loop, and what it records."""
