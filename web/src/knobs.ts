// A box that opens: numbers of something, with sliders for what one plays with and fields for the rest. Changes are sent while one slides.
import './knobs.css'
import type { App } from './app'
import { h, number, parse, setText, show, throttle, write } from './ui'

type Values = Record<string, number>

// `low` … `high` of the slider; `log`: equal ways are equal factors, and the left end is 0.
export interface Knob {
  key: string
  label: string
  low: number
  high: number
  unit?: string
  log?: boolean
  note?: string
}

export interface BoxOptions {
  kind: string // begins the names for tests
  test: string
  title: string
  owner: string // whose numbers, for those who cannot see it
  command: string // what a change begins with; KEY=VALUE follow
  knobs: Knob[]
  brief: (values: Values) => string
  now: () => Values | undefined // what the simulator has
  link?: (key: string, value: number, values: Values) => [string, number][] // others that a change takes along
}

export interface Box {
  details: HTMLDetailsElement
  fill: (values: Values) => void
}

const ECHO = 700 // ms in which the echo of a change is due

export function createBox(app: App, options: BoxOptions, first: Values): Box {
  const { kind, test, knobs, owner } = options
  const brief = h('span', { class: 'dim', test: `${kind}-brief-${test}` })
  const body = h('div', { class: 'box-body' })
  const details = h('details', { class: 'box', test: `${kind}-${test}` }, h('summary', {}, h('span', {}, options.title), brief), body)
  const setters = new Map<string, (value: number) => void>()
  const waiting = new Map<string, number>()
  let values = first
  let settling = 0
  let touched = -Infinity // when a hand last changed something: the simulator's echo must not pull the slider back

  const send = throttle(100, () => {
    if (!waiting.size) return
    const text = [...waiting].map(([key, value]) => `${key}=${write(value)}`).join(' ')
    waiting.clear()
    app.command(`${options.command} ${text}`).catch(() => settle())
    window.clearTimeout(settling)
    settling = window.setTimeout(settle, ECHO)
  })
  // What the simulator has, once the hand is still or a change was refused.
  function settle(): void {
    touched = -Infinity
    const now = options.now()
    if (now) fill(now)
  }
  function change(key: string, value: number): void {
    touched = performance.now()
    for (const [k, v] of [[key, value], ...(options.link?.(key, value, values) ?? [])] as [string, number][]) {
      values = { ...values, [k]: v }
      waiting.set(k, v)
      setters.get(k)?.(v)
    }
    drawBrief()
    send()
  }
  function drawBrief(): void {
    setText(brief, options.brief(values))
  }

  function build(): void {
    const known = new Set(knobs.map((k) => k.key))
    const rest = Object.keys(values).filter((key) => !known.has(key))
    for (const knob of knobs) if (knob.key in values) body.append(slider(knob))
    for (const key of rest) {
      const input = number(`${kind}-${test}-${key}`, '', { 'aria-label': key })
      input.addEventListener('change', () => Number.isFinite(input.valueAsNumber) && change(key, input.valueAsNumber))
      setters.set(key, (v) => {
        if (document.activeElement !== input) input.value = String(Number(v.toPrecision(6)))
      })
      const label = key.replaceAll(/[-_]/g, ' ')
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
      'aria-label': `${knob.label} of ${owner}`,
    })
    const text = h('input', { inputmode: 'decimal', test: `${kind}-${test}-${key}`, 'aria-label': `${knob.label} of ${owner}, number` })
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
    const title = [knob.unit, knob.note].filter(Boolean).join(', ')
    return h('label', { class: 'slide', title }, h('span', {}, knob.label), range, text)
  }

  details.addEventListener('toggle', () => {
    if (!details.open) return
    if (!body.children.length) build()
    for (const [key, set] of setters) set(values[key])
  })
  function fill(now: Values): void {
    if (performance.now() - touched < ECHO && isBehind(now, values)) return
    values = now
    drawBrief()
    if (details.open) for (const [key, set] of setters) set(values[key])
  }
  fill(first)
  return { details, fill }
}

// The echo of an older place of a slider.
function isBehind(echo: Values, now: Values): boolean {
  return Object.keys(now).some((key) => Math.abs((echo[key] ?? 0) - now[key]) > 1e-6 * Math.abs(now[key]))
}
