// SPDX-License-Identifier: GPL-3.0-or-later
// Flamenco's interface for job types, as documented, around the script that is named first: compiles
// the job whose settings are the second argument, and prints what became of it as JSON.
"use strict";
const fs = require("fs"), vm = require("vm"), posix = require("path").posix;

const COMMANDS = {  // by their parameters
    "blender-render": ["exe", "exeArgs", "argsBefore", "blendfile", "args"],
    "exec": ["exe", "args"], "echo": ["message"], "sleep": ["duration_in_seconds"],
};

function task(name, type) {
    if (!name.trim() || !type.trim()) throw new Error("author.Task(name, type) needs both");
    const made = { name: name.trim(), type: type.trim(), commands: [], dependencies: [] };
    return Object.assign(made, {
        addCommand: command => { made.commands.push(command); },
        addDependency: other => { made.dependencies.push(other); },
    });
}

function command(name, parameters) {
    for (const key of Object.keys(parameters)) {
        if (!(COMMANDS[name] || []).includes(key)) throw new Error(`${name} has no ${key}`);
    }
    return { name, parameters };
}

const stem = name => posix.basename(name).replace(/(.)\.[^.]*$/, "$1");
const context = vm.createContext({
    author: { Task: task, Command: command },
    path: { basename: posix.basename, dirname: posix.dirname, join: posix.join, stem },
    print: () => {}, alert: () => {}, formatTimestampLocal: () => "2026-01-01_000000",
});
vm.runInContext(fs.readFileSync(process.argv[2], "utf8") + "\nthis.JOB_TYPE = JOB_TYPE;", context);
const job = {
    name: "test", created: new Date(0), settings: JSON.parse(process.argv[3]), tasks: [],
    addTask: added => { job.tasks.push(added); },
};
let error = null;
try {
    context.compileJob(job);
} catch (thrown) {
    error = String(thrown);
}
const tasks = job.tasks.map(t => ({
    name: t.name, type: t.type, commands: t.commands,
    dependencies: t.dependencies.map(other => job.tasks.indexOf(other)),
}));
console.log(JSON.stringify({ type: context.JOB_TYPE, tasks, error }));
