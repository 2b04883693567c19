# SPDX-License-Identifier: GPL-3.0-or-later
"""The paper's experiments (SCA12, section 4 and table 3) as commands; no part of the extension."""
