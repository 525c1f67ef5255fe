// Small helpers for the shell and the panels: making elements, showing numbers, and the few signals that panels send each other.
import type { App, Quat, SensorInfo, SensorKind, Vec3, World } from './app'

// ---- elements

type Child = Node | string | null | undefined | false
type Handler = (event: never) => void
// Attributes by name; `on…` are listeners, `test` is the data-testid, `text` the content, true and false set or leave out an attribute.
type Props = Record<string, string | number | boolean | null | undefined | Handler>

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(key.slice(2), value as unknown as EventListener)
    else if (key === 'test') element.dataset.testid = String(value)
    else if (key === 'text') element.textContent = String(value)
    else element.setAttribute(key, value === true ? '' : String(value))
  }
  for (const child of children) if (child) element.append(child)
  return element
}

// A picture from an SVG path on a 24 x 24 grid, drawn as a line.
export function icon(path: string, size = 20): SVGSVGElement {
  const space = 'http://www.w3.org/2000/svg'
  const svg = document.createElementNS(space, 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('width', String(size))
  svg.setAttribute('height', String(size))
  svg.setAttribute('aria-hidden', 'true')
  svg.classList.add('icon')
  const line = document.createElementNS(space, 'path')
  line.setAttribute('d', path)
  svg.append(line)
  return svg
}

export const icons = {
  play: 'M7 4v16l13-8z',
  pause: 'M8 5v14M16 5v14',
  step: 'M5 5v14l9-7zM18 5v14',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  up: 'M12 20V5M5 12l7-7 7 7',
  down: 'M12 4v15M5 12l7 7 7-7',
  move: 'M12 3v18M3 12h18M9 6l3-3 3 3M9 18l3 3 3-3M6 9l-3 3 3 3M18 9l3 3-3 3',
  eye: 'M2 12c5-9 15-9 20 0-5 9-15 9-20 0zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
  bin: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  reset: 'M4 4v6h6M4.5 10a8 8 0 1 1-1 5',
  save: 'M12 4v11M7 10l5 5 5-5M4 20h16',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  camera: 'M3 8h4l2-3h6l2 3h4v11H3zM12 10a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z',
  layers: 'M12 3l9 5-9 5-9-5zM3 13l9 5 9-5',
  target: 'M12 2v4M12 18v4M2 12h4M18 12h4M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10z',
  chevron: 'M9 6l6 6-6 6',
  picture: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01',
}

export function button(label: string, test: string, click: () => void, props: Props = {}): HTMLButtonElement {
  return h('button', { type: 'button', test, onclick: click, ...props }, label)
}

// A button that is only a picture; its label is for those who cannot see it, and for the pointer that rests on it.
export function iconButton(path: string, label: string, test: string, click: () => void, props: Props = {}): HTMLButtonElement {
  return h('button', { type: 'button', class: 'plain', test, title: label, 'aria-label': label, onclick: click, ...props }, icon(path, 18))
}

export function field(label: string, control: HTMLElement, unit = ''): HTMLLabelElement {
  return h('label', { class: 'field' }, h('span', { class: 'field-label' }, label), control, unit ? h('span', { class: 'unit' }, unit) : null)
}

export function number(test: string, value: number | string, props: Props = {}): HTMLInputElement {
  return h('input', { type: 'number', step: 'any', inputmode: 'decimal', test, value, ...props })
}

export function select(test: string, options: (string | [string, string])[], props: Props = {}): HTMLSelectElement {
  const element = h('select', { test, ...props })
  setOptions(element, options)
  return element
}

// Other options, the chosen one kept where it is still there.
export function setOptions(element: HTMLSelectElement, options: (string | [string, string])[]): void {
  const chosen = element.value
  const pairs = options.map((o) => (typeof o === 'string' ? ([o, o] as [string, string]) : o))
  const same = element.options.length === pairs.length && pairs.every(([v, t], i) => element.options[i].value === v && element.options[i].text === t)
  if (same) return
  element.replaceChildren(...pairs.map(([value, text]) => h('option', { value }, text)))
  if (pairs.some(([v]) => v === chosen)) element.value = chosen
}

export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

// A row of two columns: what, and its value.
export function row(list: HTMLElement, what: string, value: string | Node, test?: string): HTMLElement {
  const cell = h('dd', { test }, value)
  list.append(h('dt', {}, what), cell)
  return cell
}

// ---- numbers

// As many digits as are of use, never an exponent where a plain number is as short.
export function show(value: number | undefined | null, digits = 4): string {
  if (value === undefined || value === null || Number.isNaN(value)) return '–'
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞'
  const size = Math.abs(value)
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return minus(String(Number(value.toPrecision(digits)).toExponential()).replace('e+', 'e'))
  return minus(String(Number(value.toPrecision(digits))))
}

// A fixed number of decimals: for values that change while one looks.
export function fixed(value: number | undefined, decimals = 3): string {
  if (value === undefined || !Number.isFinite(value)) return '–'
  const text = value.toFixed(decimals)
  return minus(Number(text) === 0 ? text.replace('-', '') : text)
}

function minus(text: string): string {
  return text.replace('-', '−')
}

// What a person typed: a decimal comma, a true minus sign and a unit of degrees are understood. NaN: no number.
export function parse(text: string): number {
  const plain = text.trim().replace('−', '-').replace(',', '.')
  const degrees = plain.match(/^(.*?)\s*(°|deg)$/)
  const digits = degrees ? degrees[1] : plain
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(digits)) return NaN
  return degrees ? (Number(digits) * Math.PI) / 180 : Number(digits)
}

// For a command: short, and exact enough to give the same float again.
export function write(value: number): string {
  return String(Number(value.toPrecision(9)))
}

// A name in a command: blanks want quotes.
export function quote(name: string): string {
  return /\s/.test(name) ? `"${name}"` : name
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`
  if (n < 1e6) return `${(n / 1e3).toFixed(1)} kB`
  return n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(2)} GB`
}

export function clock(t: number): string {
  const sign = t < 0 ? '−' : ''
  const s = Math.abs(t)
  const hours = Math.floor(s / 3600)
  const minutes = Math.floor((s % 3600) / 60)
  const seconds = (s % 60).toFixed(2).padStart(5, '0')
  return sign + (hours ? `${hours}:${String(minutes).padStart(2, '0')}:${seconds}` : `${minutes}:${seconds}`)
}

// Roll, pitch, yaw about the fixed axes x, y, z.
export function rollPitchYaw([w, x, y, z]: Quat): Vec3 {
  const pitch = Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x))))
  return [Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)), pitch, Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))]
}

export function pose(app: App, link: number): { p: Vec3; q: Quat } | null {
  const a = app.poses
  const i = 7 * link
  if (link < 0 || i + 7 > a.length) return null
  return { p: [a[i], a[i + 1], a[i + 2]], q: [a[i + 3], a[i + 4], a[i + 5], a[i + 6]] }
}

// ---- the world

// The link that carries the others of a group, -1 when the group has none.
export function rootLink(world: World, group: number): number {
  let roots = rootsOf.get(world)
  if (!roots) {
    const below = new Set(world.joints.filter((j) => j.parent >= 0).map((j) => j.child))
    const isRoot = (i: number) => !below.has(i)
    roots = new Map()
    for (let i = 0; i < world.links.length; i++) {
      const old = roots.get(world.links[i].group)
      if (old === undefined || (!isRoot(old) && isRoot(i))) roots.set(world.links[i].group, i)
    }
    rootsOf.set(world, roots)
  }
  return roots.get(group) ?? -1
}
const rootsOf = new WeakMap<World, Map<number, number>>()

// All that can be watched and plotted.
export function valueNames(world: World, hasSoil: boolean): string[] {
  const names = ['energy', 'energy.kinetic', 'energy.potential', 'closure']
  const ofLink = ['x', 'y', 'z', 'qw', 'qx', 'qy', 'qz']
  if (hasSoil) ofLink.push('sinkage', 'slip', 'slip-angle', 'pull', 'side', 'load', 'moment')
  for (const joint of world.joints) names.push(...jointValues(joint))
  for (const drive of world.drives) names.push(`${drive.name}.torque`)
  for (const link of world.links) for (const part of ofLink) names.push(`${link.name}.${part}`)
  for (const sensor of world.sensors)
    for (const { name } of kindOf(world, sensor).readings) names.push(sensorValue(sensor, name), sensorValue(sensor, `true.${name}`))
  return names
}

export function kindOf(world: World, sensor: SensorInfo): SensorKind {
  return world.sensor_kinds.find((kind) => kind.name === sensor.kind) ?? { name: sensor.kind, readings: [], parameters: [] }
}

// A number of a sensor: a reading, `true.` and a reading, or `set.` and a parameter.
export function sensorValue(sensor: SensorInfo, what: string): string {
  return `${sensor.robot}/${sensor.name}.${what}`
}

export function jointValues(joint: { name: string; n_q: number; n_v: number }): string[] {
  const list = (letter: string, n: number) =>
    n === 1 ? [`${joint.name}.${letter}`] : Array.from({ length: n }, (_, i) => `${joint.name}.${letter}[${i}]`)
  return [...list('q', joint.n_q), ...list('v', joint.n_v)]
}

// ---- who may command

export interface Permission {
  allowed: boolean
  reason: string
}
const permissions = new WeakMap<App, Permission>()

export function permission(app: App): Permission {
  return permissions.get(app) ?? { allowed: false, reason: 'Not connected yet.' }
}
export function setPermission(app: App, to: Permission): void {
  permissions.set(app, to)
  signal('permission', to)
}

// Everything inside is disabled, and the reason shown, while this page may not command.
export function commands(...children: Child[]): HTMLFieldSetElement {
  const reason = h('p', { class: 'reason', test: 'control-reason', hidden: true })
  const box = h('fieldset', { class: 'commands', disabled: true }, reason, ...children)
  listen('permission', (now) => {
    box.disabled = !now.allowed
    reason.hidden = now.allowed
    setText(reason, now.reason)
  })
  return box
}

// Sends a command; its failure is shown by a toast of the app.
export function tell(app: App, text: string, done?: (answer: string) => void): void {
  app.command(text).then(
    (answer) => done?.(answer),
    () => undefined,
  )
}

// ---- signals between panels and the shell

interface Signals {
  permission: Permission
  plot: string[] // puts values on the scope
  open: string // opens a panel
  badge: { panel: string; count: number }
  absent: { panel: string; absent: boolean } // a panel that has nothing to show is not offered
}
const bus = new EventTarget()

export function signal<K extends keyof Signals>(name: K, data: Signals[K]): void {
  bus.dispatchEvent(new CustomEvent(name, { detail: data }))
}
export function listen<K extends keyof Signals>(name: K, handler: (data: Signals[K]) => void): void {
  bus.addEventListener(name, (event) => handler((event as CustomEvent<Signals[K]>).detail))
}

// ---- odds and ends

// Calls at most once in `ms`; the last call is never lost.
export function throttle(ms: number, action: () => void): () => void {
  let timer = 0
  let last = -Infinity
  return () => {
    if (timer) return
    const wait = Math.max(0, last + ms - performance.now())
    timer = window.setTimeout(() => {
      timer = 0
      last = performance.now()
      action()
    }, wait)
  }
}

export function download(name: string, blob: Blob): void {
  const link = h('a', { href: URL.createObjectURL(blob), download: name })
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(link.href), 10000)
}

// What the browser remembers; a browser that does not allow it remembers nothing.
export function remember(key: string, value: unknown): void {
  try {
    localStorage.setItem(`understudy.${key}`, JSON.stringify(value))
  } catch {
    /* remembers nothing */
  }
}
export function recall<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`understudy.${key}`)
    return text === null ? otherwise : (JSON.parse(text) as T)
  } catch {
    return otherwise
  }
}

export const narrow = matchMedia('(max-width: 800px)')
// Rows that a finger must hit are higher.
export const coarse = matchMedia('(max-width: 800px), (pointer: coarse)')
