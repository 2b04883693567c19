# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of a clip before, and of a result after."""
