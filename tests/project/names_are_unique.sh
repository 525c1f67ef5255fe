#!/usr/bin/env bash
# Names and lines of the C sources: names_are_unique.sh [SOURCE_DIRECTORY]
#   file name       no two files in src/ have one base name, in whatever rooms
#   type name       no two files in src/ and include/ have a typedef of one name, file-local ones included
#   private header  a header room/room__x.h is included by files of src/room alone
#   line length     no line has more than 110 columns
#   comma           no expression statement in src/, cli/ and include/ is made of several by commas
# Prints each place that breaks this, as file:line, and ends with 1 when there is one. Preprocessor directives are
# looked at for their length and for what they include; the bodies of macros are not parsed.
set -euo pipefail
cd "${1:-${US_SOURCE_DIR:-.}}"

node - <<'NODE'
const fs = require('fs');
const path = require('path');

const MAX_COLUMNS = 110;
let n_wrong = 0;
let n_file = 0;

function complain(file, line, text) {
    console.log(`${file}:${line}: ${text}`);
    n_wrong++;
}

function list_files(directory) {
    if (!fs.existsSync(directory)) return [];
    const found = [];
    for (const entry of fs.readdirSync(directory, {withFileTypes: true})) {
        const name = path.join(directory, entry.name);
        if (entry.isDirectory()) found.push(...list_files(name));
        else if (/\.[ch]$/.test(entry.name)) found.push(name);
    }
    return found.sort();
}

// ---------------------------------------------------------------- tokens

// Tokens of a file without comments and directives: {text, line}. Literals become "" and 0.
function tokens_of(text) {
    const tokens = [];
    let i = 0;
    let line = 1;
    let is_line_start = true;
    const skip_to = (end) => {
        for (; i < end; i++) if (text[i] === '\n') line++;
    };
    while (i < text.length) {
        const c = text[i];
        if (c === '\n') {
            line++;
            i++;
            is_line_start = true;
        } else if (/\s/.test(c) || c === '\\') {
            i++;
        } else if (text.startsWith('//', i)) {
            const end = text.indexOf('\n', i);
            i = end < 0 ? text.length : end;
        } else if (text.startsWith('/*', i)) {
            const end = text.indexOf('*/', i + 2);
            skip_to(end < 0 ? text.length : end + 2);
        } else if (c === '#' && is_line_start) {
            let end = i;
            do end = (text.indexOf('\n', end + 1) + text.length + 1) % (text.length + 1);
            while (end < text.length && text[end - 1] === '\\');
            skip_to(end);
        } else if (c === '"' || c === "'") {
            const first_line = line;
            let end = i + 1;
            while (end < text.length && text[end] !== c && text[end] !== '\n') end += text[end] === '\\' ? 2 : 1;
            skip_to(Math.min(end + 1, text.length));
            tokens.push({text: c === '"' ? '""' : '0', line: first_line});
            is_line_start = false;
        } else {
            const word = /^(?:[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|->|\+\+|--|[-+*\/%&|^<>=!]=|<<=?|>>=?|&&|\|\||\.\.\.|.)/s.exec(text.slice(i, i + 200))[0];
            tokens.push({text: word, line});
            i += word.length;
            is_line_start = false;
        }
    }
    return tokens;
}

// ---------------------------------------------------------------- statements

const CONTROL = new Set(['if', 'for', 'while', 'switch']);
const STARTS_STATEMENT = new Set([...CONTROL, 'else', 'do', 'return', 'break', 'continue', 'goto', 'case', 'default', 'typedef']);
const STARTS_DECLARATION = new Set([
    'const', 'static', 'extern', 'typedef', 'register', 'volatile', 'inline', 'struct', 'union', 'enum', 'unsigned', 'signed', 'int',
    'double', 'float', 'char', 'void', 'bool', '_Bool', 'long', 'short', '_Alignas', '_Atomic', '_Static_assert', '_Thread_local',
    '__attribute__', '__extension__', 'auto',
]);
const is_word = (token) => token !== undefined && /^[A-Za-z_]/.test(token.text);
const is_name = (token) => is_word(token) && !STARTS_STATEMENT.has(token.text) && !['sizeof', '_Alignof'].includes(token.text);

// Where the bracket at `at` is closed.
function closing(tokens, at) {
    let depth = 0;
    for (let i = at; i < tokens.length; i++) {
        if ('([{'.includes(tokens[i].text)) depth++;
        else if (')]}'.includes(tokens[i].text) && --depth === 0) return i;
    }
    return tokens.length - 1;
}

// Whether the statement of these tokens (without what is in its brackets) declares something.
function is_declaration(s) {
    if (s.is_type || STARTS_DECLARATION.has(s.tokens[0].text)) return true;
    if (!is_name(s.tokens[0])) return false;
    let i = 1;
    while (s.tokens[i]?.text === '*' || ['const', 'restrict', 'volatile'].includes(s.tokens[i]?.text)) i++;
    if (is_word(s.tokens[i])) return true;
    // type (*name)(...) and type (*name)[...]: two brackets behind a name, and the first begins with a star.
    return i === 1 && s.tokens[1]?.text === '(*)' && ['()', '(*)', '[]'].includes(s.tokens[2]?.text);
}

// Calls on_statement for each expression statement or declaration: {tokens, is_type, commas}, brackets reduced to one token.
function statements_of(tokens, on_statement) {
    let s = {tokens: [], commas: []};
    const finish = () => {
        if (s.tokens.length > 0) on_statement(s);
        s = {tokens: [], commas: []};
    };
    const blocks = [];
    for (let i = 0; i < tokens.length; i++) {
        const token = tokens[i];
        const last = s.tokens[s.tokens.length - 1];
        if (token.text === ';') {
            finish();
        } else if (token.text === '(' || token.text === '[') {
            const end = closing(tokens, i);
            const star = token.text === '(' && tokens[i + 1]?.text === '*' ? '*' : '';
            const is_header = token.text === '(' && last !== undefined && CONTROL.has(last.text);
            const is_call = token.text === '(' && is_name(last);
            s.tokens.push({text: token.text + star + (token.text === '(' ? ')' : ']'), line: token.line, from: i, to: end, is_call});
            i = end;
            // What a control statement governs is a statement of its own; so is what follows a macro without a semicolon.
            if (is_header) s = {tokens: [], commas: [], is_governed: true};
            else if (is_call && is_word(tokens[end + 1]) && !['__attribute__', 'US_PRINTF'].includes(tokens[end + 1].text) &&
                     last.text !== '__attribute__') s = {tokens: [], commas: []};
        } else if (token.text === '{') {
            const words = s.tokens.map((t) => t.text);
            const is_list = words.includes('=') || words.includes('enum') || words.includes('return') || words.includes(',') ||
                            (last !== undefined && /^\(/.test(last.text) && !last.is_call && !s.is_governed && blocks.length > 0);
            const is_members = !is_list && (words.includes('struct') || words.includes('union')) && !words.some((w) => /^\(/.test(w));
            if (is_list) {
                const end = closing(tokens, i);
                s.tokens.push({text: '{}', line: token.line});
                if (words.includes('enum')) s.is_type = true;
                i = end;
            } else {
                blocks.push(is_members ? s : null);
                s = {tokens: [], commas: []};
            }
        } else if (token.text === '}') {
            finish();
            // A type goes on behind its members: the names that it declares.
            const opened = blocks.pop();
            if (opened) s = {...opened, is_type: true};
        } else if (token.text === 'else' || token.text === 'do') {
            s = {tokens: [], commas: []};
        } else if (token.text === ':' && s.tokens.length > 0 &&
                   (['case', 'default'].includes(s.tokens[0].text) || (s.tokens.length === 1 && is_name(s.tokens[0])))) {
            s = {tokens: [], commas: []};
        } else {
            if (token.text === ',') s.commas.push(token.line);
            if (CONTROL.has(token.text)) s = {tokens: [], commas: []};
            s.tokens.push(token);
        }
    }
}

// The name that a typedef gives.
function typedef_name(s, tokens) {
    let rest = s.tokens.filter((t, k) => t.text !== '__attribute__' && s.tokens[k - 1]?.text !== '__attribute__');
    const pointer = rest.find((t) => t.text === '(*)');
    if (pointer) return tokens.slice(pointer.from, pointer.to).filter(is_word).map((t) => t.text)[0];
    const call = rest.findIndex((t, k) => t.text === '()' && k > 1);
    if (call > 0) rest = rest.slice(0, call);
    const words = rest.filter(is_word);
    return words[words.length - 1]?.text;
}

// ---------------------------------------------------------------- rules

const base_names = new Map();
for (const file of list_files('src')) {
    const name = path.basename(file);
    if (base_names.has(name)) complain(file, 1, `${base_names.get(name)} has the same base name: say in both what they hold`);
    else base_names.set(name, file);
}

const types = new Map();
for (const directory of ['include', 'src', 'cli', 'tests', 'bench', 'examples', 'fuzz']) {
    for (const file of list_files(directory)) {
        const text = fs.readFileSync(file, 'utf8');
        n_file++;
        text.split('\n').forEach((line, k) => {
            const columns = [...line].length;
            if (columns > MAX_COLUMNS) complain(file, k + 1, `${columns} columns, of at most ${MAX_COLUMNS}`);
            const include = /^\s*#\s*include\s*[<"](\w+)\/(\w+)__[\w.]*[>"]/.exec(line);
            if (include && include[1] === include[2] && directory !== 'tests' && directory !== 'fuzz' && !file.startsWith(path.join('src', include[1]) + path.sep))
                complain(file, k + 1, `a private header of the room ${include[1]}: use one that it shows to others`);
        });
        if (!['src', 'include', 'cli'].includes(directory)) continue;
        const tokens = tokens_of(text);
        statements_of(tokens, (s) => {
            if (s.tokens[0].text === 'typedef' && directory !== 'cli') {
                const name = typedef_name(s, tokens);
                const other = types.get(name);
                if (other && other.file !== file) complain(file, s.tokens[0].line, `the type ${name} is defined in ${other.file}:${other.line} too`);
                else types.set(name, {file, line: s.tokens[0].line});
            } else if (s.commas.length > 0 && !is_declaration(s)) {
                complain(file, s.commas[0], 'a comma between expressions: write two statements');
            }
        });
    }
}

if (n_file === 0) complain('.', 0, `no C files below ${process.cwd()}`);
process.exit(n_wrong > 0 ? 1 : 0);
NODE
