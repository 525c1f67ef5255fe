// Sensors: what each robot measures with, what each says now, its parameters, which can be changed while it runs, and how points of lidars are
// drawn.
import './sensors.css'
import type { App, Panel, SensorInfo, SensorParameter } from '../app'
import { lidarState } from '../layers/lidar'
import { cloudColors, cloudLook, type CloudColor } from '../view/clouds'
import { commands, field, fixed, h, iconButton, icons, kindOf, number, quote, recall, remember, select, sensorValue, setText, show, signal, tell, write } from '../ui'

let visible = false
let look = () => {}

const about = (sensor: SensorInfo): string => {
  const rate = sensor.rate > 0 ? `${show(sensor.rate, 3)} Hz` : 'every step'
  return sensor.rings === undefined ? rate : `${rate}, ${sensor.rings} rings to ${show(sensor.range, 3)} m`
}

function slider(test: string, low: number, high: number, value: number, change: (value: number) => void): HTMLInputElement {
  const input = h('input', { type: 'range', test, min: low, max: high, step: 'any', value })
  input.addEventListener('input', () => change(Number(input.value)))
  return input
}

// One number that is shown, and how.
interface Shown {
  value: string // its name
  show: (value: number | undefined) => void
}

function readingRow(sensor: SensorInfo, name: string, unit: string): { row: HTMLElement; shown: Shown } {
  const value = sensorValue(sensor, name)
  const text = h('td', { test: `reading-${value}` }, '–')
  const plus = iconButton(icons.plus, `Plot ${value}`, `sensor-plot-${value}`, () => signal('plot', [value]), { class: 'plain sensor-plus' })
  const row = h('tr', {}, h('td', {}, name), text, h('td', { class: 'unit' }, unit === '1' ? '' : unit), h('td', {}, plus))
  return { row, shown: { value, show: (x) => setText(text, show(x)) } }
}

function parameterRow(app: App, sensor: SensorInfo, p: SensorParameter): { row: HTMLElement; shown: Shown } {
  const value = sensorValue(sensor, `set.${p.name}`)
  const test = `parameter-${sensor.robot}/${sensor.name}.${p.name}`
  const send = (text: string): void => tell(app, `sensor ${quote(`${sensor.robot}/${sensor.name}`)} ${p.name}=${quote(text)}`)
  if (p.choices) {
    const choices = p.choices
    const chosen = select(test, choices)
    chosen.addEventListener('change', () => send(chosen.value))
    const row = field(p.name, chosen)
    row.title = p.about
    return { row, shown: { value, show: (x) => x !== undefined && document.activeElement !== chosen && (chosen.value = choices[x] ?? '') } }
  }
  const input = number(test, '', { min: p.low, max: p.high })
  input.addEventListener('change', () => {
    if (input.value.trim() !== '') send(input.value)
    input.blur()
  })
  const row = field(p.name, input, p.unit === '1' ? '' : p.unit)
  row.title = `${p.about} ${show(p.low)} to ${show(p.high)}`
  return { row, shown: { value, show: (x) => x !== undefined && document.activeElement !== input && (input.value = write(x)) } }
}

// Rate and latency, which all sensors have.
const frame: SensorParameter[] = [
  { name: 'rate', unit: 'Hz', low: 0, high: 1e6, about: 'Samples a second; 0: at every step.' },
  { name: 'latency', unit: 's', low: 0, high: 10, about: 'From a sample until the robot has it.' },
]

function create(app: App, root: HTMLElement): void {
  Object.assign(cloudLook, recall('clouds', cloudLook))
  const keep = (): void => {
    remember('clouds', cloudLook)
    app.view.redraw()
  }
  const color = select(
    'cloud-color',
    cloudColors.map((name): [string, string] => [name, name[0]?.toUpperCase() + name.slice(1)]),
  )
  color.value = cloudLook.color
  color.addEventListener('change', () => {
    cloudLook.color = color.value as CloudColor
    keep()
  })
  const size = slider('cloud-size', 1, 6, cloudLook.size, (value) => {
    cloudLook.size = value
    keep()
  })
  const trail = slider('cloud-trail', 0, 3, cloudLook.trail, (value) => {
    cloudLook.trail = value
    keep()
  })
  const points = h('div', { class: 'regions', test: 'cloud-look' }, field('Colour by', color), field('Point size', size), field('Trail', trail, 's'))
  const list = h('div', { test: 'sensors' })
  const empty = h('p', { class: 'hint' }, 'No robot of this scene has sensors.')
  root.append(empty, points, commands(list))
  const cells: { sensor: SensorInfo; cell: HTMLElement }[] = []
  const opened = new Map<string, Shown[]>() // sensors of which all numbers are shown

  const watch = (): void => app.watch('sensors', visible ? [...opened.values()].flat().map((one) => one.value) : [])

  // What a sensor says and what it can be told, made when somebody looks.
  function fill(sensor: SensorInfo, box: HTMLElement): Shown[] {
    const kind = app.world ? kindOf(app.world, sensor) : undefined
    const readings = (kind?.readings ?? []).map((r) => readingRow(sensor, r.name, r.unit))
    // Frames of a lidar have the size that the rate in the scene gives them.
    const own = [...frame.filter((p) => sensor.lidar === undefined || p.name !== 'rate'), ...(kind?.parameters ?? [])]
    const parameters = own.map((p) => parameterRow(app, sensor, p))
    box.replaceChildren(
      h('table', { class: 'readings', hidden: readings.length === 0 }, h('tbody', {}, ...readings.map((r) => r.row))),
      ...parameters.map((p) => p.row),
    )
    return [...readings, ...parameters].map((r) => r.shown)
  }

  function build(): void {
    const sensors = app.world?.sensors ?? []
    const before = new Set(opened.keys())
    cells.length = 0
    opened.clear()
    list.replaceChildren(
      ...sensors.map((sensor) => {
        const key = `${sensor.robot}/${sensor.name}`
        const cell = h('span', { class: 'sensor-state', test: `sensor-${key}` })
        cells.push({ sensor, cell })
        const name = h('span', {}, key, h('small', { class: 'dim' }, ` ${sensor.kind}, ${about(sensor)}`))
        const inside = h('div')
        const box = h('details', { class: 'sensor' }, h('summary', { test: `sensor-open-${key}` }, name, cell), inside)
        box.addEventListener('toggle', () => {
          if (box.open && sensor.link >= 0) app.select({ kind: 'link', index: sensor.link })
          if (box.open) opened.set(key, fill(sensor, inside))
          else opened.delete(key)
          watch()
          draw()
        })
        // An edit of the world leaves open what was open.
        box.open = before.has(key)
        return box
      }),
    )
    watch()
    empty.hidden = sensors.length > 0
    points.hidden = !sensors.some((sensor) => sensor.lidar !== undefined)
    signal('absent', { panel: 'sensors', absent: sensors.length === 0 })
    draw()
  }
  function draw(): void {
    if (!visible) return
    for (const { sensor, cell } of cells) {
      if (sensor.lidar === undefined) continue
      const { n, time } = lidarState(sensor.lidar)
      setText(cell, time === undefined ? 'nothing yet' : `${n} points, ${fixed(app.time - time, 2)} s old`)
    }
    for (const shown of opened.values()) for (const one of shown) one.show(app.value(one.value))
  }
  app.on('world', build)
  app.on('poses', draw)
  app.on('values', draw)
  look = () => {
    watch()
    draw()
  }
}

export default {
  id: 'sensors',
  title: 'Sensors',
  order: 65,
  icon: 'M12 13a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM7.5 15.5a6 6 0 0 1 0-9M16.5 6.5a6 6 0 0 1 0 9M5 18a9.5 9.5 0 0 1 0-14M19 4a9.5 9.5 0 0 1 0 14M12 13v8',
  isHidden: true,
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
