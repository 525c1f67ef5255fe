// Sensors: what each robot measures with, how points of lidars are drawn, and how old what they say is.
import type { App, Panel, SensorInfo } from '../app'
import { lidarState } from '../layers/lidar'
import { cloudColors, cloudLook, type CloudColor } from '../view/clouds'
import { field, fixed, h, recall, remember, select, setText, show, signal } from '../ui'

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
  const body = h('tbody')
  const table = h('table', { class: 'sunk', test: 'sensors' }, body)
  const empty = h('p', { class: 'hint' }, 'No robot of this scene has sensors.')
  root.append(empty, points, table)
  const cells: { sensor: SensorInfo; cell: HTMLElement }[] = []

  function build(): void {
    const sensors = app.world?.sensors ?? []
    cells.length = 0
    body.replaceChildren(
      ...sensors.map((sensor) => {
        const cell = h('td', { test: `sensor-${sensor.robot}/${sensor.name}` })
        cells.push({ sensor, cell })
        const name = h('td', {}, `${sensor.robot}/${sensor.name}`, h('small', { class: 'dim' }, ` ${sensor.kind}, ${about(sensor)}`))
        const row = h('tr', {}, name, cell)
        row.addEventListener('click', () => sensor.link >= 0 && app.select({ kind: 'link', index: sensor.link }))
        return row
      }),
    )
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
  }
  app.on('world', build)
  app.on('poses', draw)
  look = draw
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
