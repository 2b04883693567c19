# SPDX-License-Identifier: GPL-3.0-or-later
"""What is drawn over 3D views and animation editors."""
