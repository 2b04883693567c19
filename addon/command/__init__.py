# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender --command poise` and `python -m poise`: one file for each command."""
