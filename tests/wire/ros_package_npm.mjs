// node ros_package_npm.mjs NODE_MODULES TYPES PACKAGE
//
// The ROS package in the directory PACKAGE as Foxglove's reader of .msg files, installed in NODE_MODULES, sees it. TYPES has our tables, one JSON object
// per line: {"name", "hash", "fields": [{"name", "type", "shape", "count", "bound"}]}. Every file is a type of them with the same members in the same
// order, every type of the package has its file, and the hash of its description (RIHS01, REP 2011), made here from the files, is the table's. Files
// and dependencies that the package names are those that it has.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";

const [directory, table, root] = process.argv.slice(2);
const require = createRequire(join(resolve(directory), "..", "index.js"));
const { parse } = require("@foxglove/rosmsg");
const PACKAGE = basename(root);

const ids = { int8: 2, uint8: 3, int16: 4, uint16: 5, int32: 6, uint32: 7, int64: 8, uint64: 9, float32: 10, float64: 11, bool: 15, byte: 16, string: 17 };
const shapeIds = { one: 0, array: 48, sequence: 144 };
const [ID_MESSAGE, ID_BOUNDED_STRING, ID_BOUNDED_SEQUENCE] = [1, 21, 96];

let failed = 0;
function complain(text) {
  console.error(text);
  failed++;
}

// ---------------------------------------------------------------- reading

const tables = new Map();
for (const line of readFileSync(table, "utf8").split("\n").filter((text) => text)) {
  const type = JSON.parse(line);
  tables.set(type.name, type);
}

// The members of a text, in the form of the tables. Foxglove calls a byte uint8, so that word is looked for in the text.
function readFields(text, name) {
  const [definition, ...others] = parse(text, { ros2: true, skipTypeFixup: true });
  if (others.length > 0 || definition.name) complain(`${name}: more than one message`);
  const fields = definition.definitions.map((found) => {
    if (found.isConstant) complain(`${name}: constant ${found.name} is not in the tables`);
    if (found.defaultValue !== undefined) complain(`${name}: ${found.name} has a default that is not in the tables`);
    const isByte = new RegExp(`^byte(\\[[^ ]*)? ${found.name}\\b`, "m").test(text);
    return {
      name: found.name,
      type: isByte && found.type === "uint8" ? "byte" : found.isComplex ? found.type.replace("/", "/msg/") : found.type,
      shape: !found.isArray ? "one" : found.arrayLength ? "array" : "sequence",
      count: found.arrayLength ?? found.arrayUpperBound ?? 0,
      bound: found.upperBound ?? 0,
    };
  });
  return fields.length > 0 ? fields : [{ name: "structure_needs_at_least_one_member", type: "uint8", shape: "one", count: 0, bound: 0 }];
}

// What the files of the package say, by the names of the types; a service is its two halves.
const read = new Map();
const files = [];
for (const kind of ["msg", "srv"]) {
  for (const file of readdirSync(join(root, kind))) {
    const name = `${PACKAGE}/${kind}/${basename(file, `.${kind}`)}`;
    const parts = readFileSync(join(root, kind, file), "utf8").split(/^---$/m);
    if (!file.endsWith(`.${kind}`) || parts.length !== (kind === "srv" ? 2 : 1)) complain(`${kind}/${file}: not a .${kind} file`);
    parts.forEach((text, i) => read.set(kind === "srv" ? name + ["_Request", "_Response"][i] : name, readFields(text, name)));
    files.push(`${kind}/${file}`);
  }
}

// ---------------------------------------------------------------- hashes

// As Python's json.dumps writes it.
function json(value) {
  if (Array.isArray(value)) return `[${value.map(json).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${json(inner)}`).join(", ")}}`;
}

function fieldsOf(name) {
  const event = /^(.*)_Event$/.exec(name);
  if (event && !read.has(name)) {
    const half = (field, part) => ({ name: field, type: event[1] + part, shape: "sequence", count: 1, bound: 0 });
    const info = { name: "info", type: "service_msgs/msg/ServiceEventInfo", shape: "one", count: 0, bound: 0 };
    return [info, half("request", "_Request"), half("response", "_Response")];
  }
  return read.get(name) ?? tables.get(name).fields;
}

function describe(name, fields) {
  return {
    type_name: name,
    fields: fields.map((field) => {
      const kind = ids[field.type] ?? ID_MESSAGE;
      const shape = field.shape === "sequence" && field.count > 0 ? ID_BOUNDED_SEQUENCE : shapeIds[field.shape];
      return {
        name: field.name,
        type: {
          type_id: (field.bound > 0 ? ID_BOUNDED_STRING : kind) + shape,
          capacity: field.count,
          string_capacity: field.bound,
          nested_type_name: kind === ID_MESSAGE ? field.type : "",
        },
      };
    }),
  };
}

function addInner(fields, inner) {
  for (const field of fields.filter(({ type }) => !(type in ids) && !inner.has(type))) {
    inner.add(field.type);
    addInner(fieldsOf(field.type), inner);
  }
}

function hashOf(name, fields) {
  const inner = new Set();
  addInner(fields, inner);
  const description = {
    type_description: describe(name, fields),
    referenced_type_descriptions: [...inner].sort().map((other) => describe(other, fieldsOf(other))),
  };
  return `RIHS01_${createHash("sha256").update(json(description)).digest("hex")}`;
}

// A service is described as a message of three.
function serviceFields(service) {
  const part = (name, end) => ({ name, type: service + end, shape: "one", count: 0, bound: 0 });
  return [part("request_message", "_Request"), part("response_message", "_Response"), part("event_message", "_Event")];
}

// ---------------------------------------------------------------- comparing

for (const [name, type] of tables) {
  if (!name.startsWith(`${PACKAGE}/`)) continue;
  const found = read.get(name);
  if (!found) {
    complain(`${name}: no file of the package has it`);
    continue;
  }
  // Before the members of a .srv file stand the client's id and number on the wire.
  const isService = name.startsWith(`${PACKAGE}/srv/`);
  const expected = isService && type.fields[0].name === "guid" && type.fields[1]?.name === "seq" ? type.fields.slice(2) : type.fields;
  if (json(found) !== json(expected)) complain(`${name}: the file has ${json(found)}, the table ${json(expected)}`);
  const service = name.replace(/_(Request|Response)$/, "");
  const hash = isService ? hashOf(service, serviceFields(service)) : hashOf(name, found);
  if (hash !== type.hash) complain(`${name}: ${hash} by its file, ${type.hash} announced`);
}
for (const name of read.keys()) {
  if (!tables.has(name)) complain(`${name}: in the package, but not in the tables`);
}

const build = readFileSync(join(root, "CMakeLists.txt"), "utf8");
const named = [...build.matchAll(/^ {2}"(.*)"$/gm)].map((match) => match[1]);
if (json(named) !== json([...files].sort())) complain(`CMakeLists.txt names ${named.join(" ")}, there are ${files.join(" ")}`);

const used = new Set([...read.values()].flat().map(({ type }) => type.split("/")[0]).filter((name) => !(name in ids) && name !== PACKAGE));
const manifest = readFileSync(join(root, "package.xml"), "utf8");
const needed = [...manifest.matchAll(/<depend>(.*)<\/depend>/g)].map((match) => match[1]);
const given = (/DEPENDENCIES (.*)\)/.exec(build)?.[1] ?? "").split(" ");
if (json(needed) !== json([...used].sort())) complain(`package.xml depends on ${needed.join(" ")}, used are ${[...used].join(" ")}`);
if (json(given) !== json([...used].sort())) complain(`CMakeLists.txt depends on ${given.join(" ")}, used are ${[...used].join(" ")}`);
for (const name of needed) {
  if (!build.includes(`find_package(${name} REQUIRED)`)) complain(`CMakeLists.txt does not look for ${name}`);
}

console.log(`${read.size} types, ${failed} failed`);
process.exit(failed ? 1 : 0);
