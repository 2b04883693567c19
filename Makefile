# SPDX-License-Identifier: GPL-3.0-or-later
# Poise: `make test` and `make demo` set up all they need in .venv, once, and say how long it takes.
#
# PYTHON  Python 3.11 or 3.13 to set up with; the first of python3, python3.13, python3.11 that is one
# VENV    folder of the set-up
# BPY     another Blender module than the newest one for that Python, such as 'bpy==4.2.*', and perhaps
#         the NumPy that it was made with
# ARGS    options of an experiment, such as '--clips arm wave'

# A name in the path may be a pyenv shim that only says what is not installed: so each is run.
PYTHON ?= $(shell for p in python3 python3.13 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 13)))' 2>/dev/null \
	&& echo $$p && break; done)
VENV ?= .venv
BPY ?=
PYTEST_ARGS ?=
ARGS ?=

# Threads of the BLAS make small problems many times slower.
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1
export MKL_NUM_THREADS = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Hundreds of processes of the tests import Poise: with its bytecode kept, each does in a fifth of the time.
unexport PYTHONDONTWRITEBYTECODE

bin := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
ready := $(VENV)/.poise-ready
lint_ready := $(VENV)/.poise-lint-ready
# What Blender's module needs of the system, in the names of Debian and Ubuntu.
LIBRARIES = libgl1 libgomp1 libice6 libsm6 libx11-6 libxfixes3 libxi6 libxkbcommon0 libxrender1 \
	libxt6 libxxf86vm1

.PHONY: help test slow docs versions extension prove-extension demo bench figures table3 table4 ablation morphologies study sok stairs sitting waypoints commands endless carensac acts skills falls together wang lint clean libraries

help:
	@echo "make test   set up .venv and run the tests"
	@echo "make slow   the proofs that take long"
	@echo "make versions  the tests on Blender 4.2, 4.3, 4.5 and 5.0, with Python 3.11; 5.2 has 3.13"
	@echo "make extension  build the extension's zips for all platforms, of both kinds, in build/extension"
	@echo "make prove-extension  that they come out the same again, and work"
	@echo "make demo   simulate and bake three shots; pictures and reports in build/demo"
	@echo "make bench  measure speed"
	@echo "make figures  what becomes of the captured clips"
	@echo "make table3   search gains for the paper's ten kinds of clip, beside its own numbers"
	@echo "make table4   try the gains of each clip on each other one, beside the paper's"
	@echo "make ablation  leave out each component of balance in turn"
	@echo "make morphologies  search gains for other bodies on the paper's kinds of clip"
	@echo "make study  what makes the search faster, and what does not"
	@echo "make sok    perform walks, runs, jumps and kicks, as they are and rectified; draws them"
	@echo "make wang   clean feet and weight of walks; draws their curves before and after"
	@echo "make together  sixty pairs of characters that meet, simulated in one world"
	@echo "make falls   two hundred falls, limp, braced and stiff, and sixty get-ups"
	@echo "make stairs  walk up and down stairs and ramps"
	@echo "make sitting sit down on chairs, get up, be pushed there"
	@echo "make waypoints  how near walks and a run come to waypoints"
	@echo "make commands   how walks follow commands of speed and heading"
	@echo "make endless    who walks on and on, and bears pushes"
	@echo "make carensac   how a walk fares at low rates of control"
	@echo "make acts       what walkers perform between two walks, by 50 tries each"
	@echo "make skills     at which speeds walks are learned, and how scripts direct them"
	@echo "make lint   ruff, and the types of the rooms in mypy.ini"
	@echo "make docs   the library's reference from its docstrings, in build/reference"
	@echo "make clean  remove .venv and build"

# WORKERS: processes that test. 0 is this one.
WORKERS ?= 2
test: $(ready)
	@echo "make test: running the tests with $$($(bin)/python -V) in $(WORKERS) processes; about 6 minutes."
	$(bin)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

slow: $(ready)
	@echo "make slow: running the proofs that take long; a few minutes."
	$(bin)/python -m pytest -m slow $(PYTEST_ARGS)

# PYTHONS: where to try the wheels
PYTHONS ?= $(bin)/python
extension: $(ready)
	@echo "make extension: downloading wheels once (about 480 MB), then a minute."
	$(bin)/python packaging/extension.py

prove-extension: extension
	$(bin)/python packaging/prove.py $(PYTHONS)

versions:
	@for version in 4.2 4.3 4.5 5.0; do \
		$(MAKE) test VENV=.venv-$$version BPY="bpy==$$version.* numpy==1.26.*" || failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "make versions: failed on$$failed" >&2; exit 1; }

demo: $(ready)
	@echo "make demo: simulating, baking and rendering three shots into build/demo; about 3 minutes."
	$(bin)/python demo/run.py --output build/demo

bench: $(ready)
	@echo "make bench: measuring speed; about 8 minutes. Leave the machine alone meanwhile."
	$(bin)/python tests/bench.py

figures: $(ready)
	@echo "make figures: simulating and baking all captured clips; about 3 minutes."
	$(bin)/python tests/figures.py

table3: $(ready)
	@echo "make table3: searching gains for all clips in both modes; about 20 minutes on two" \
		"processors. Quicker: make table3 ARGS=--quick"
	$(bin)/python -m poise.experiments.table3 $(ARGS)

table4: $(ready)
	@echo "make table4: tuning on each clip and trying on each other one; about 20 minutes on two" \
		"processors. It goes on from build/table4.json if it was interrupted."
	$(bin)/python -m poise.experiments.table4 $(ARGS)

ablation: $(ready)
	@echo "make ablation: leaving out each component of balance; about 10 minutes on two processors."
	$(bin)/python -m poise.experiments.ablation $(ARGS)

morphologies: $(ready)
	@echo "make morphologies: searching gains for four other bodies; about 20 minutes on two" \
		"processors. Quicker: make morphologies ARGS='--morphologies stout --clips squat'"
	$(bin)/python -m poise.experiments.morphologies $(ARGS)

study: $(ready)
	@echo "make study: searching with each variant of the search, several seeds; a few hours."
	$(bin)/python -m poise.experiments.study $(ARGS)

sok: $(ready)
	@echo "make sok: rectifying twelve clips; about 20 minutes on two processors. It goes on where" \
		"it was interrupted. Quicker: make sok ARGS=--quick; more: make sok ARGS='--clips all';" \
		"walks by samples of what was done: make sok ARGS=--learned"
	$(bin)/python -m poise.experiments.sok $(ARGS)

wang: $(ready)
	@echo "make wang: cleaning five walks; a few seconds. Others: make wang ARGS='--clips run jump'"
	$(bin)/python -m poise.experiments.wang $(ARGS)

together: $(ready)
	@echo "make together: sixty pairs that meet; about 8 minutes on two processors."
	$(bin)/python -m poise.experiments.together $(ARGS)

falls: $(ready)
	@echo "make falls: two hundred falls of each kind, sixty get-ups; about 20 minutes on two processors."
	$(bin)/python -m poise.experiments.falls $(ARGS)

get-ups: $(ready)
	@echo "make get-ups: get-ups of an animator's own, forty-eight falls, with them and without; about 5 minutes on two processors."
	$(bin)/python -m poise.experiments.get_ups $(ARGS)

stairs: $(ready)
	@echo "make stairs: three captured walks on stairs and ramps, five times each; about 2 minutes."
	$(bin)/python -m poise.experiments.stairs

sitting: $(ready)
	@echo "make sitting: a made person on chairs, who sits down, gets up, and is pushed; about 1 minute."
	$(bin)/python -m poise.experiments.sitting

commands: $(ready)
	@echo "make commands: four captured walks by random scripts of 60 s, with stops and without; about 12 minutes."
	$(bin)/python -m poise.experiments.commands

endless: $(ready)
	@echo "make endless: captured walks and runs that go on, with noise and pushes; about 12 minutes."
	$(bin)/python -m poise.experiments.endless $(ARGS)

carensac: $(ready)
	@echo "make carensac: a captured walk at six rates of control; about 6 minutes."
	$(bin)/python -m poise.experiments.carensac $(ARGS)

acts: $(ready)
	@echo "make acts: twelve captured clips, performed by two captured walkers, 50 times each; about 40 minutes."
	$(bin)/python -m poise.experiments.acts $(ARGS)

skills: $(ready)
	@echo "make skills: captured walks, learned and directed by random scripts of 60 s; about 20 minutes."
	$(bin)/python -m poise.experiments.skills

waypoints: $(ready)
	@echo "make waypoints: nine captured clips and walks on stairs with waypoints; about 6 minutes."
	$(bin)/python -m poise.experiments.waypoints

lint: $(lint_ready)
	$(bin)/python -m ruff check .
	$(bin)/python -m ruff format --check .
	$(bin)/python -m mypy

docs: $(ready)
	$(bin)/python -m pip install --quiet 'pdoc>=15'
	$(bin)/python -m pdoc --math --docformat restructuredtext --output-directory build/reference \
		poise.controller

libraries:
	@echo $(LIBRARIES)

clean:
	rm -rf $(VENV) build

$(ready): pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or 3.13 found: install one, or name it:" \
		"make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "make: setting up $(VENV) once with $$($(PYTHON) -V) and Blender as a module:" \
		"a download of about 500 MB, 1 to 5 minutes."
	@# Made anew, so that nothing of an earlier set-up stays.
	$(PYTHON) -m venv --clear $(VENV)
	$(bin)/python -m pip install --quiet --editable '.[test]' $(BPY)
	@$(bin)/python -c 'import bpy' || { echo "make: Blender's module does not start. On Debian or" \
		"Ubuntu install what it needs: apt-get install $(LIBRARIES)" >&2; exit 1; }
	@touch $@

$(lint_ready): $(ready)
	$(bin)/python -m pip install --quiet 'ruff>=0.9' 'mypy>=1.14'
	@touch $@
