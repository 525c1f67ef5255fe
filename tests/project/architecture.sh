#!/usr/bin/env bash
# docs/architecture.md against the tree: architecture.sh [SOURCE_DIRECTORY]
#   rooms     its table has the rooms of cmake/rooms.txt in their order, each with what it may include
#   threads   it names every C and C++ file of src/, cli/, reader/ and plugins/ that makes a thread or a lock
#   walks     the files that it names exist, and their numbers are those that it gives; a command's walk has at most 7 rooms and 16 files
# Prints what is wrong and ends with 1 when something is.
set -euo pipefail
cd "${1:-${US_SOURCE_DIR:-.}}"

node - <<'NODE'
const fs = require('fs');
const path = require('path');

const PAGE = 'docs/architecture.md';
const MAX_WALK = {rooms: 7, files: 16};
const NUMBER = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const text = fs.readFileSync(PAGE, 'utf8');
let n_wrong = 0;

function complain(what) {
    console.log(`${PAGE}: ${what}`);
    n_wrong++;
}

// What stands below a heading, up to the next one of its level.
function section(heading) {
    const level = /^#+/.exec(heading)[0];
    const begin = text.indexOf(`\n${heading}\n`);
    if (begin < 0) {
        complain(`there is no "${heading}"`);
        return '';
    }
    const rest = text.slice(begin + heading.length + 2);
    const end = rest.search(new RegExp(`^#{1,${level.length}} `, 'm'));
    return end < 0 ? rest : rest.slice(0, end);
}

// ---------------------------------------------------------------- rooms

const rooms = [];
const rules = new Map();
for (const line of fs.readFileSync('cmake/rooms.txt', 'utf8').split('\n')) {
    const rule = /^([a-z]\w*)(?::\s*(.*))?$/.exec(line);
    if (!rule) continue;
    rules.set(rule[1], rule[2] === undefined ? (rooms.length > 0 ? 'all above' : '') : rule[2].trim().split(/\s+/).join(', '));
    rooms.push(rule[1]);
}
const rows = [...section('## Rooms').matchAll(/^\| (\w+) \| .* \|([^|]*)\|$/gm)].filter((row) => row[1] !== 'room');
if (rows.map((row) => row[1]).join(' ') !== rooms.join(' '))
    complain(`the rooms are ${rooms.join(', ')}, in this order, and the table has ${rows.map((row) => row[1]).join(', ')}`);
for (const [, room, allowed] of rows) {
    if (rules.has(room) && allowed.trim() !== rules.get(room)) complain(`${room} may include ${rules.get(room) || 'nothing'}, not ${allowed.trim() || 'nothing'}`);
}

// ---------------------------------------------------------------- threads and locks

function list_files(directory) {
    if (!fs.existsSync(directory)) return [];
    return fs.readdirSync(directory, {withFileTypes: true, recursive: true})
        .filter((entry) => entry.isFile() && /\.(?:c|cpp)$/.test(entry.name))
        .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
        .sort();
}

const MAKES = /\bpthread_(?:create|once|mutex_init|rwlock_init)\s*\(|\bPTHREAD_\w+_INITIALIZER\b|\bstd::(?:thread|mutex)\b|\bfork\s*\(|\bposix_spawn\s*\(/;
const threads = section('## Threads and locks');
for (const file of ['src', 'cli', 'reader', 'plugins'].flatMap(list_files)) {
    const code = fs.readFileSync(file, 'utf8').replace(/\/\/.*$/gm, '');
    const name = file.replace(/^src\//, '');
    if (MAKES.test(code) && !threads.includes(`\`${name}\``)) complain(`"Threads and locks" does not name ${name}, which makes one`);
}

// ---------------------------------------------------------------- walks

function walk(heading) {
    const steps = /^1\. [\s\S]*?(?=\n\n)/m.exec(section(heading));
    if (!steps) {
        complain(`"${heading}" has no steps`);
        return {rooms: [], files: []};
    }
    const files = new Set();
    const seen = new Set();
    let room = '';
    for (const [, bold, file] of steps[0].matchAll(/\*\*(\w+)\*\*|`([\w*\/]+\.[ch])`/g)) {
        if (bold) {
            room = bold;
            seen.add(room);
            if (!rules.has(room)) complain(`"${heading}": there is no room ${room}`);
            continue;
        }
        files.add(`${room}/${file}`);
        const pattern = new RegExp(`^${file.replace(/\./g, '\\.').replace(/\*/g, '\\w*')}$`);
        const directory = path.join('src', room);
        if (!fs.existsSync(directory) || !fs.readdirSync(directory).some((name) => pattern.test(name))) complain(`"${heading}": there is no src/${room}/${file}`);
    }
    return {rooms: [...seen], files: [...files]};
}

// "Seven rooms (a, b) and 16 files", "Four rooms": what the page says must be what it names.
for (const heading of ['### A command to a torque to a sample', '### A scene to a state', '### A slider to a contact row']) {
    const found = walk(heading);
    const said = /^([A-Z][a-z]+) rooms(?: \(([^)]*)\) and (\d+) files)?/m.exec(section(heading));
    if (!said) complain(`"${heading}" does not say its number of rooms`);
    else if (NUMBER.indexOf(said[1].toLowerCase()) !== found.rooms.length) complain(`"${heading}" names ${found.rooms.length} rooms: ${found.rooms.join(', ')}`);
    if (said?.[2] && said[2].split(', ').sort().join() !== found.rooms.sort().join()) complain(`"${heading}" goes through ${found.rooms.join(', ')}`);
    if (said?.[3] && Number(said[3]) !== found.files.length) complain(`"${heading}" names ${found.files.length} files: ${found.files.join(', ')}`);
    if (said?.[3] && (found.rooms.length > MAX_WALK.rooms || found.files.length > MAX_WALK.files))
        complain(`"${heading}" has ${found.rooms.length} rooms and ${found.files.length} files, of at most ${MAX_WALK.rooms} and ${MAX_WALK.files}`);
}

process.exit(n_wrong > 0 ? 1 : 0);
NODE
