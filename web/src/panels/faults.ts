// Faults: what has failed, what the scene has in store, and each part of a robot with buttons that let it fail.
import './faults.css'
import type { App, Panel, RobotStatus, ScriptedFault } from '../app'
import { button, commands, field, h, number, quote, select, setOptions, show, signal, tell } from '../ui'

// A way to fail: `number` is what it takes behind a colon. `optional`: an empty field leaves it out.
interface Kind {
  name: string
  number?: { label: string; unit: string; value: string; optional?: boolean; isText?: boolean }
}
interface Part {
  id: string
  title: string
  per?: 'drive' | 'encoder' | 'joint' | 'lidar' | 'sensor'
  isFinal?: boolean // nothing mends it but reset and restore
  kinds: Kind[]
}
const parts: Part[] = [
  {
    id: 'motor',
    title: 'Motors',
    per: 'drive',
    kinds: [
      { name: 'dead' },
      { name: 'weak', number: { label: 'Strength left', unit: '', value: '0.3' } },
      { name: 'blocked', number: { label: 'Blocked by', unit: 'N m', value: '', optional: true } },
    ],
  },
  { id: 'joint', title: 'Joints', per: 'joint', isFinal: true, kinds: [{ name: 'broken' }] },
  {
    id: 'encoder',
    title: 'Encoders',
    per: 'encoder',
    kinds: [
      { name: 'stuck' },
      { name: 'jump', number: { label: 'Jump by', unit: 'rad', value: '0.5' } },
      { name: 'drift', number: { label: 'Drift by', unit: 'rad/s', value: '0.05' } },
    ],
  },
  { id: 'imu', title: 'Inertial sensor', kinds: [{ name: 'stuck' }, { name: 'bias', number: { label: 'Bias', unit: 'm/s², rad/s', value: '0.2,0,0' } }] },
  {
    id: 'lidar',
    title: 'Lidars',
    per: 'lidar',
    kinds: [
      { name: 'dead' },
      { name: 'frozen' },
      { name: 'blind', number: { label: 'Blind from, to', unit: 'deg', value: '-30,30' } },
      { name: 'beams', number: { label: 'Rings lost, first, last', unit: '', value: '0,7' } },
      { name: 'dirt', number: { label: 'Dirt takes', unit: 'of 1', value: '0.6' } },
    ],
  },
  {
    id: 'sensor',
    title: 'Any sensor',
    per: 'sensor',
    kinds: [
      { name: 'dead' },
      { name: 'frozen' },
      { name: 'noisy', number: { label: 'Noisy by', unit: 'times', value: '5' } },
      { name: 'delayed', number: { label: 'Delayed by', unit: 's', value: '0.2' } },
      { name: 'dropping', number: { label: 'Dropping', unit: 'of 1', value: '0.3' } },
      { name: 'offset', number: { label: 'Offset of', unit: 'reading,value', value: '', isText: true } },
      { name: 'noise', number: { label: 'Noise on', unit: 'reading,value', value: '', isText: true } },
    ],
  },
  { id: 'power', title: 'Power', kinds: [{ name: 'brownout', number: { label: 'Brownout of', unit: 's', value: '2', optional: true } }] },
  { id: 'computer', title: 'Computer', kinds: [{ name: 'reboot', number: { label: 'Reboot of', unit: 's', value: '5', optional: true } }] },
  {
    id: 'link',
    title: 'Radio link',
    kinds: [
      { name: 'outage', number: { label: 'Outage of', unit: 's', value: '5', optional: true } },
      { name: 'loss', number: { label: 'Loss', unit: '', value: '0.2' } },
      { name: 'delay', number: { label: 'Delay', unit: 's', value: '1.3' } },
    ],
  },
]

// "after slip, 3 s later", "at 12.5 s", "when odom.x > 3".
function occasion(f: ScriptedFault): string {
  const words: string[] = []
  if (f.after) words.push(f.at > 0 ? `${show(f.at)} s after ${f.after}` : `after ${f.after}`)
  else if (f.at > 0 || !f.when) words.push(`${f.when ? 'from' : 'at'} ${show(f.at)} s`)
  if (f.when) words.push(`when ${f.when}`)
  if (f.for > 0) words.push(`for ${show(f.for)} s`)
  return words.join(', ')
}

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  const robot = select('fault-robot', [], { 'aria-label': 'Robot' })
  const now = h('div', { test: 'faults-now' })
  const store = h('div', { test: 'faults-store' })
  const storeTitle = h('h3', {}, 'In store')
  const list = h('div', { test: 'fault-parts' })
  const none = h('p', { class: 'hint' }, 'No robot of this scene is on the network.')
  const rows = new Map<string, HTMLElement>() // by "motor:JOINT", "imu"
  let drawn = '' // last time
  let built = '' // the parts for which there are rows

  const group = () => app.world?.groups.find((g) => g.name === robot.value && g.namespace !== null)
  const status = (): RobotStatus | undefined => app.status?.robots.find((r) => r.name === robot.value)
  const send = (what: string) => tell(app, `fault ${quote(robot.value)} ${what}`)

  function partBox(part: Part, joints: string[]): HTMLElement {
    const inputs = new Map<string, HTMLInputElement>()
    const fields = part.kinds.flatMap((kind) => {
      if (!kind.number) return []
      const { label, unit, value, optional, isText } = kind.number
      const isList = isText || value.includes(',')
      const input = isList
        ? h('input', { test: `fault-${part.id}-${kind.name}-number`, value, placeholder: isText ? 'range,0.5' : '' })
        : number(`fault-${part.id}-${kind.name}-number`, value, { placeholder: optional ? 'for good' : '' })
      if (part.id === 'motor' && optional) input.placeholder = 'all it has'
      inputs.set(kind.name, input)
      return [field(label, input, unit)]
    })
    const line = (name: string) => {
      const key = name ? `${part.id}:${name}` : part.id
      const press = (kind: Kind) => {
        const text = inputs.get(kind.name)?.value.trim().replaceAll(' ', '') ?? ''
        send(`${key}=${kind.name}${text ? `:${text}` : ''}`)
      }
      const buttons = part.kinds.map((kind) => button(kind.name, `fault-${key}-${kind.name}`, () => press(kind)))
      const row = h(
        'div',
        { class: 'fault-row', test: `fault-row-${key}` },
        h('span', {}, name || part.title),
        ...buttons,
        ...(part.isFinal ? [] : [button('ok', `fault-${key}-ok`, () => send(`${key}=ok`), { title: 'Mend it' })]),
      )
      rows.set(key, row)
      return row
    }
    const body = part.per ? joints.map(line) : [line('')]
    const title = h('summary', { test: `fault-part-${part.id}` }, h('span', {}, part.title), h('small', { class: 'dim' }, part.per ? String(joints.length) : ''))
    // What was open stays so when the robot has become another.
    const before = list.querySelector<HTMLDetailsElement>(`[data-testid="fault-box-${part.id}"]`)
    return h('details', { class: 'fault-part', test: `fault-box-${part.id}`, open: before?.open ?? !part.per }, title, ...fields, ...body)
  }

  // The parts of a robot.
  function build(): void {
    const world = app.world
    const robots = world?.groups.filter((g) => g.namespace !== null).map((g) => g.name) ?? []
    setOptions(robot, robots)
    robot.hidden = robots.length < 2
    none.hidden = robots.length > 0
    drawn = ''
    const index = world ? world.groups.findIndex((g) => g.name === robot.value) : -1
    if (!world || index < 0) {
      rows.clear()
      return list.replaceChildren()
    }
    const own = (name: string) => (name.startsWith(`${robot.value}/`) ? name.slice(robot.value.length + 1) : name)
    const driven = new Set(world.drives.map((d) => d.joint))
    const joints = world.joints.map((j, i) => ({ ...j, i })).filter((j) => j.group === index)
    const names = {
      drive: joints.filter((j) => driven.has(j.i)).map((j) => own(j.name)),
      encoder: joints.filter((j) => j.n_q === 1 && j.n_v === 1).map((j) => own(j.name)),
      joint: joints.filter((j) => j.type !== 'floating').map((j) => own(j.name)),
      lidar: world.sensors.filter((s) => s.robot === robot.value && s.lidar !== undefined).map((s) => s.name),
      sensor: world.sensors.filter((s) => s.robot === robot.value).map((s) => s.name),
    }
    // A revision in which the robot is the same leaves alone what somebody is typing.
    const key = JSON.stringify([robot.value, names])
    if (key !== built) {
      built = key
      rows.clear()
      const wanted = parts.filter((part) => !part.per || names[part.per].length > 0)
      list.replaceChildren(...wanted.map((part) => partBox(part, part.per ? names[part.per] : [])))
    }
    draw()
  }

  function draw(): void {
    const faults = status()?.faults ?? []
    signal('badge', { panel: 'faults', count: (app.status?.robots ?? []).reduce((n, r) => n + r.faults.length, 0) })
    if (!visible) return
    const scripts = group()?.faults ?? []
    const states = status()?.scripts ?? []
    const text = JSON.stringify([robot.value, faults, states, scripts.length])
    if (text === drawn) return
    drawn = text
    now.replaceChildren(
      ...faults.map(({ what, text: said }) => {
        const key = what.slice(0, what.indexOf('='))
        const isFinal = parts.find((part) => key.startsWith(`${part.id}:`))?.isFinal
        const undo = isFinal ? [] : [button('Undo', `fault-undo-${key}`, () => send(`${key}=ok`))]
        return h('div', { class: 'fault-now', test: `fault-now-${what}` }, h('span', {}, said), ...undo)
      }),
    )
    if (faults.length === 0) now.append(h('p', { class: 'hint' }, 'Nothing has failed.'))
    const failed = new Set(faults.map((f) => f.what.slice(0, f.what.indexOf('='))))
    for (const [key, row] of rows) row.classList.toggle('failed', failed.has(key))
    store.hidden = storeTitle.hidden = scripts.length === 0
    store.replaceChildren(
      ...scripts.map((f, i) => {
        const state = ['waits', 'has come', 'over'][states[i] ?? 0]
        return h(
          'div',
          { class: states[i] === 2 ? 'fault-script over' : 'fault-script', test: `fault-script-${i}` },
          h('span', {}, f.name ? `${f.name}: ${f.what}` : f.what),
          h('b', { test: `fault-script-state-${i}` }, state),
          h('small', { class: 'dim' }, occasion(f)),
        )
      }),
    )
  }
  root.append(none, commands(robot, now, storeTitle, store, h('h3', {}, 'Let fail'), list))
  robot.addEventListener('change', build)
  app.on('world', build)
  app.on('status', draw)
  look = draw
}

export default {
  id: 'faults',
  title: 'Faults',
  order: 65,
  icon: 'M12 3l10 18H2zM12 10v5M12 18h.01',
  create,
  shown(_app: App, isShown: boolean) {
    visible = isShown
    look()
  },
} satisfies Panel
