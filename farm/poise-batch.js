// SPDX-License-Identifier: GPL-3.0-or-later
//
// A Flamenco 3 job type that bakes a folder of shots with Poise.
//
// Copy it into the folder `scripts` beside flamenco-manager, and restart that. Every worker needs a
// Blender with Poise installed in it, and sees the folders at the paths that the job names.
//
// There is one task for each shot and each variant (or for `chunk` shots), and a last one that waits
// for all of them and sums up. A task bakes by `poise batch --farm`, which watches over the process
// that does it, and ends well once it is on record what became of the shot: a shot that falls, or
// that cannot be read, is not tried again by other workers, and does not keep the summary from being
// written. A task that fails in Flamenco is one in which Blender or Poise itself did not start.

const JOB_TYPE = {
    label: "Poise Batch",
    settings: [
        { key: "folder", type: "string", subtype: "dir_path", required: true, visible: "submission",
          eval: "str(abspath('//'))",
          evalInfo: { showLinkButton: true, description: "Folder of the open file" },
          description: "Folder of the shots" },
        { key: "shots", type: "string", required: true,
          eval: "' | '.join(sorted(p.name for p in Path(abspath(settings.folder)).glob('*')" +
                " if p.suffix.lower() in ('.blend', '.bvh', '.fbx', '.glb', '.gltf')))",
          evalInfo: { showLinkButton: true, description: "All shots in the folder" },
          description: "Names of the shots in the folder, with | between them" },
        { key: "output", type: "string", subtype: "dir_path", required: true,
          description: "Folder for results, records and logs, one in it for each variant" },
        { key: "report", type: "string", subtype: "file_path", required: true,
          eval: "str(Path(abspath(settings.output), 'summary.html'))",
          evalInfo: { showLinkButton: true, description: "summary.html in the output folder" },
          description: "The summary to write, an HTML page" },
        { key: "gains", type: "string", default: "",
          description: "Presets of gains or files, with | between them: each is a variant; none " +
                       "for the defaults" },
        { key: "seeds", type: "string", default: "",
          description: "Seeds of all that is random, with | between them: each is a variant; none " +
                       "for 0" },
        { key: "optimize", type: "string", default: "",
          description: "Search gains for each shot first, for so long: 60s, 10min; nothing for no " +
                       "search" },
        { key: "method", type: "string", choices: ["balance", "auto", "rectify"], default: "balance",
          description: "How the shots are performed" },
        { key: "options", type: "string", default: "", visible: "submission",
          description: "More options of `poise bake`, with | between them: " +
                       "--frames=1:200 | --noise=5" },
        { key: "timeout", type: "string", default: "2h", visible: "submission",
          description: "A shot that takes longer is ended: 30min, 2h" },
        { key: "chunk", type: "int32", default: 1, propargs: { min: 1, max: 1000 },
          visible: "submission", description: "Number of shots in one task" },
        { key: "blender", type: "string", default: "{blender}", visible: "web",
          description: "The Blender that has Poise: a path, or a variable of the Manager" },
    ]
};

function compileJob(job) {
    const settings = job.settings;
    const shots = listed(settings.shots);
    if (shots.length === 0) {
        throw "There are no shots: name some in the folder '" + settings.folder +
            "', with | between them.";
    }
    const size = settings.chunk || 1;
    if (size < 1) {
        throw "A task of " + size + " shots is none: give 1 or more.";
    }
    const collecting = author.Task("summary", "blender");
    for (const variant of variants(settings)) {
        for (let first = 0; first < shots.length; first += size) {
            const task = bakingTask(settings, variant, shots.slice(first, first + size));
            collecting.addDependency(task);
            job.addTask(task);
        }
    }
    collecting.addCommand(poise(settings, [
        "--farm", "--collect", settings.output,
        "--report", settings.report,
        "--json", withoutEnding(settings.report) + ".json",
    ]));
    job.addTask(collecting);
}

// The names in a setting, with | between them.
function listed(text) {
    return (text || "").split("|").map(name => name.trim()).filter(name => name !== "");
}

// [{name, args}] of all that each shot is baked with; one without a name where there is no choice.
function variants(settings) {
    const gains = listed(settings.gains), seeds = listed(settings.seeds);
    const found = [];
    for (const set of gains.length ? gains : [""]) {
        for (const seed of seeds.length ? seeds : [""]) {
            const parts = [], args = [];
            if (set) {
                args.push("--gains=" + set);
                if (gains.length > 1) {
                    parts.push(withoutEnding(path.basename(set)));
                }
            }
            if (seed) {
                args.push("--seed=" + seed);
                if (seeds.length > 1) {
                    parts.push("seed " + seed);
                }
            }
            found.push({ name: parts.join(", "), args: args });
        }
    }
    const names = new Set(found.map(variant => variant.name));
    if (names.size < found.length) {
        throw "Two variants have the same name: give gains of different names, and each seed once.";
    }
    return found;
}

function bakingTask(settings, variant, shots) {
    const args = ["--farm", "--root", settings.folder];
    args.push("--output", variant.name ? path.join(settings.output, variant.name) : settings.output);
    if (settings.timeout) {
        args.push("--timeout=" + settings.timeout);
    }
    if (settings.optimize) {
        args.push("--optimize=" + settings.optimize);
    }
    if (settings.method && settings.method !== "balance") {
        args.push("--method=" + settings.method);
    }
    const more = shots.length > 1 ? " and " + (shots.length - 1) + " more" : "";
    const title = shots[0] + more + (variant.name ? " (" + variant.name + ")" : "");
    const task = author.Task(title, "blender");
    const files = shots.map(name => path.join(settings.folder, name));
    task.addCommand(poise(settings, [].concat(args, variant.args, listed(settings.options), files)));
    return task;
}

// The command that runs `poise batch`. It is no `blender-render`, which wants a .blend file.
function poise(settings, args) {
    return author.Command("exec", {
        exe: settings.blender || "{blender}",
        args: ["--background", "--command", "poise", "batch"].concat(args),
    });
}

function withoutEnding(name) {
    return name.replace(/\.(json|html?)$/i, "");
}
