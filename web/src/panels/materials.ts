// How materials touch: one box per pair, with sliders for what one plays with and numbers for the rest. Changes are sent while one slides.
import './materials.css'
import type { App, PairRow, Panel } from '../app'
import { commands, h, number, parse, quote, select, setOptions, setText, show, throttle, write } from '../ui'

// `low` … `high` of the slider; `log`: equal ways are equal factors, and the left end is 0.
interface Knob {
  key: string
  label: string
  low: number
  high: number
  unit?: string
  log?: boolean
}
const knobs: Knob[] = [
  { key: 'static-friction', label: 'Static friction', low: 0, high: 1.5 },
  { key: 'kinetic-friction', label: 'Kinetic friction', low: 0, high: 1.5 },
  { key: 'restitution', label: 'Restitution', low: 0, high: 1 },
  { key: 'rolling-length', label: 'Rolling length', low: 0, high: 0.05, unit: 'm' },
  { key: 'torsion-radius', label: 'Torsion radius', low: 0, high: 0.2, unit: 'm' },
  { key: 'stiffness', label: 'Stiffness', low: 1e3, high: 1e9, unit: 'N/m', log: true },
  { key: 'damping-ratio', label: 'Damping ratio', low: 0, high: 3 },
  { key: 'viscous', label: 'Viscous', low: 0, high: 50, unit: 'N s/m' },
]
const notes: Record<string, string> = { stiffness: '0: from the weight that it carries', 'torsion-radius': '0: no torsional friction' }

const ECHO = 700 // ms in which the echo of a change is due

interface Box {
  details: HTMLDetailsElement
  fill: (row: PairRow) => void
}

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  const filter = select('material-filter', [['', 'All materials']], { 'aria-label': 'Material' })
  const list = h('div', { class: 'commands', test: 'pairs' })
  const empty = h('p', { class: 'hint' }, 'No pair of materials in this scene.')
  const boxes = new Map<string, Box>()
  root.append(h('div', { class: 'line' }, filter), empty, commands(list))

  function draw(): void {
    if (!visible) return
    const names = [...new Set(app.pairs.flatMap((p) => [p.a, p.b]))].sort()
    setOptions(filter, [['', 'All materials'], ...names.map((n) => [n, n] as [string, string])])
    const shown = app.pairs.filter((p) => !filter.value || p.a === filter.value || p.b === filter.value)
    empty.hidden = shown.length > 0
    const named = new Set(app.world?.pairs.flatMap((p) => [`${p.a}\n${p.b}`, `${p.b}\n${p.a}`]))
    const rank = (row: PairRow) => (named.has(`${row.a}\n${row.b}`) ? 0 : row.a === 'default' || row.b === 'default' ? 2 : 1)
    shown.sort((p, q) => rank(p) - rank(q))
    const elements = shown.map((row) => {
      const key = `${row.a}\n${row.b}`
      let box = boxes.get(key)
      if (!box) boxes.set(key, (box = createBox(app, row)))
      box.fill(row)
      box.details.classList.toggle('unnamed', rank(row) > 0)
      return box.details
    })
    if (elements.length !== list.children.length || elements.some((e, i) => e !== list.children[i])) list.replaceChildren(...elements)
  }
  filter.addEventListener('change', draw)
  app.on('pairs', draw)
  app.on('world', draw)
  app.on('select', (selection) => {
    const name = selection?.kind === 'material' ? app.world?.materials[selection.index]?.name : undefined
    if (!name) return
    filter.value = name
    draw()
  })
  look = draw
}

function createBox(app: App, first: PairRow): Box {
  const { a, b } = first
  const test = `${a}-${b}`
  const brief = h('span', { class: 'dim', test: `pair-brief-${test}` })
  const body = h('div', { class: 'pair-body' })
  const details = h('details', { class: 'pair', test: `pair-${test}` }, h('summary', {}, h('span', {}, `${a} – ${b}`), brief), body)
  const setters = new Map<string, (value: number) => void>()
  const waiting = new Map<string, number>()
  let values = first.values
  let settling = 0
  let touched = -Infinity // when a hand last changed something: the simulator's echo must not pull the slider back

  const send = throttle(100, () => {
    if (!waiting.size) return
    const text = [...waiting].map(([key, value]) => `${key}=${write(value)}`).join(' ')
    waiting.clear()
    app.command(`pair ${quote(a)} ${quote(b)} ${text}`).catch(() => settle())
    window.clearTimeout(settling)
    settling = window.setTimeout(settle, ECHO)
  })
  // What the simulator has, once the hand is still or a change was refused.
  function settle(): void {
    touched = -Infinity
    const row = app.pairs.find((p) => p.a === a && p.b === b)
    if (row) fill(row)
  }
  function change(key: string, value: number): void {
    touched = performance.now()
    const set = (k: string, v: number) => {
      values = { ...values, [k]: v }
      waiting.set(k, v)
      setters.get(k)?.(v)
    }
    set(key, value)
    // Kinetic friction is at most the static one: whichever is moved takes the other along.
    if (key === 'static-friction' && values['kinetic-friction'] > value) set('kinetic-friction', value)
    if (key === 'kinetic-friction' && values['static-friction'] < value) set('static-friction', value)
    drawBrief()
    send()
  }
  function drawBrief(): void {
    setText(brief, `μ ${show(values['static-friction'], 3)} / ${show(values['kinetic-friction'], 3)}`)
  }

  function build(): void {
    const known = new Set(knobs.map((k) => k.key))
    const rest = Object.keys(values).filter((key) => !known.has(key))
    for (const knob of knobs) if (knob.key in values) body.append(slider(knob))
    for (const key of rest) {
      const input = number(`pair-${test}-${key}`, '', { 'aria-label': key })
      input.addEventListener('change', () => Number.isFinite(input.valueAsNumber) && change(key, input.valueAsNumber))
      setters.set(key, (v) => {
        if (document.activeElement !== input) input.value = String(Number(v.toPrecision(6)))
      })
      const label = key.replaceAll('-', ' ')
      body.append(h('label', { class: 'slide' }, h('span', {}, label[0].toUpperCase() + label.slice(1)), h('span'), input))
    }
  }
  function slider(knob: Knob): HTMLElement {
    const { key, low, high, log } = knob
    const steps = 300
    const toValue = (at: number) => {
      if (!log) return Number((low + ((high - low) * at) / steps).toPrecision(4))
      return at === 0 ? 0 : Number((low * (high / low) ** (at / steps)).toPrecision(2))
    }
    const toPlace = (v: number) => {
      if (!log) return ((v - low) / (high - low)) * steps
      return v <= 0 ? 0 : Math.max(1, (Math.log(v / low) / Math.log(high / low)) * steps)
    }
    const range = h('input', {
      type: 'range',
      min: 0,
      max: steps,
      step: 1,
      test: `slider-${test}-${key}`,
      'aria-label': `${knob.label} of ${a} and ${b}`,
    })
    const text = h('input', { inputmode: 'decimal', test: `pair-${test}-${key}`, 'aria-label': `${knob.label} of ${a} and ${b}, number` })
    const say = (v: number) => range.setAttribute('aria-valuetext', `${show(v)} ${knob.unit ?? ''}`)
    range.addEventListener('input', () => change(key, toValue(range.valueAsNumber)))
    text.addEventListener('change', () => {
      const v = parse(text.value)
      if (Number.isNaN(v)) text.value = show(values[key])
      else change(key, v)
    })
    setters.set(key, (v) => {
      if (!range.matches(':active')) range.value = String(Math.round(toPlace(v)))
      if (document.activeElement !== text) text.value = show(v)
      say(v)
    })
    const title = [knob.unit, notes[key]].filter(Boolean).join(', ')
    return h('label', { class: 'slide', title }, h('span', {}, knob.label), range, text)
  }

  details.addEventListener('toggle', () => {
    if (!details.open) return
    if (!body.children.length) build()
    for (const [key, set] of setters) set(values[key])
  })
  function fill(row: PairRow): void {
    if (performance.now() - touched < ECHO && isBehind(row.values, values)) return
    values = row.values
    drawBrief()
    if (details.open) for (const [key, set] of setters) set(values[key])
  }
  return { details, fill }
}

// The echo of an older place of a slider.
function isBehind(echo: Record<string, number>, now: Record<string, number>): boolean {
  return Object.keys(now).some((key) => Math.abs((echo[key] ?? 0) - now[key]) > 1e-6 * Math.abs(now[key]))
}

export default {
  id: 'materials',
  title: 'Materials',
  order: 50,
  icon: 'M12 3c4 5 6 8 6 11a6 6 0 0 1-12 0c0-3 2-6 6-11zM9 15a3 3 0 0 0 3 3',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
