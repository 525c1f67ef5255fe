// Driving: keys, an on-screen stick and a gamepad give one wish; it is sent 20 times a second while somebody holds something,
// and one zero when it is let go. Whatever takes the hand away (focus, pointer, panel, connection) counts as letting go.
import './drive.css'
import type { App, Group, Panel } from '../app'
import { commands, fixed, h, permission, pose, recall, remember, rootLink, row, select, setOptions, setText } from '../ui'

const PERIOD = 50 // ms
const DEAD_ZONE = 0.12 // of a gamepad's stick
const MEASURE = 0.25 // s of simulated time over which the speed is taken

interface Wish {
  x: number // -1 … 1 forward
  y: number // left
  turn: number // to the left
}

const held = new Set<string>()
let visible = false
let letGo = () => {}

function create(app: App, root: HTMLElement): void {
  let robots: Group[] = []
  let stick: Wish | null = null
  let isActive = false
  let driven = '' // who had the last wish, and gets the zero
  let pointer = -1

  const robot = select('drive-robot', [], { 'aria-label': 'Robot to drive' })
  const share = h('input', {
    type: 'range',
    min: 0.1,
    max: 1,
    step: 0.05,
    value: recall('drive.share', 0.6),
    test: 'drive-speed',
    'aria-label': 'Share of the greatest speed',
  })
  const limit = h('output', { class: 'digits', test: 'drive-limit' })
  const keys = h('input', { type: 'checkbox', role: 'switch', class: 'switch', test: 'drive-keys', checked: recall('drive.keys', true) })
  const knob = h('div', { class: 'knob' })
  const pad = h(
    'div',
    { class: 'stick', test: 'drive-stick', role: 'application', tabindex: 0, 'aria-label': 'Stick: up is forward; also arrow keys' },
    knob,
  )
  const facts = h('dl', { class: 'facts' })
  const wanted = row(facts, 'Asked', '0.00 m/s', 'drive-wanted')
  const wantedTurn = row(facts, '', '0.00 rad/s', 'drive-wanted-turn')
  const measured = row(facts, 'Measured', '–', 'drive-measured')
  const measuredTurn = row(facts, '', '–', 'drive-measured-turn')
  const none = h('p', { class: 'hint', hidden: true }, 'No robot of this scene has locomotion.')
  const padName = h('small', { class: 'dim', test: 'gamepad' }, 'Gamepad: left stick, when one is plugged in.')
  const side = h('span', {}, ', ', h('kbd', {}, 'Q'), ' ', h('kbd', {}, 'E'), ' sideways')
  const controls = h(
    'div',
    { class: 'commands' },
    h('div', { class: 'pad' }, pad, facts),
    h('label', { class: 'field' }, h('span', { class: 'field-label' }, 'Top speed'), share, limit),
    h(
      'label',
      { class: 'choice keys' },
      keys,
      h('span', {}, h('kbd', {}, 'W'), ' ', h('kbd', {}, 'A'), ' ', h('kbd', {}, 'S'), ' ', h('kbd', {}, 'D'), ' or arrows', side),
    ),
    padName,
  )
  root.append(commands(robot, none, controls))

  const chosen = () => robots.find((g) => g.name === robot.value) ?? null
  const ready = () => permission(app).allowed && chosen() !== null
  function showLimits(): void {
    const l = chosen()?.locomotion
    setText(limit, l ? `${(l.max_speed * share.valueAsNumber).toFixed(2)} m/s` : '–')
    side.hidden = l?.type !== 'all-wheel' && l?.type !== 'tripod'
    none.hidden = robots.length > 0
    controls.hidden = robots.length === 0
    pad.setAttribute('aria-disabled', String(!ready()))
  }

  // ---- the wish: the stick before the keys before the gamepad
  function fromKeys(): Wish | null {
    if (!keys.checked || held.size === 0) return null
    const on = (...codes: string[]) => (codes.some((c) => held.has(c)) ? 1 : 0)
    return {
      x: on('KeyW', 'ArrowUp') - on('KeyS', 'ArrowDown'),
      y: on('KeyQ') - on('KeyE'),
      turn: on('KeyA', 'ArrowLeft') - on('KeyD', 'ArrowRight'),
    }
  }
  function fromGamepad(): Wish | null {
    const one = navigator.getGamepads?.().find((g) => g?.connected)
    if (!one || document.hidden || !document.hasFocus()) return null
    setText(padName, `Gamepad: ${one.id.slice(0, 40)}`)
    const axis = (i: number) => (Math.abs(one.axes[i] ?? 0) < DEAD_ZONE ? 0 : one.axes[i])
    const wish = { x: -axis(1), y: -axis(2), turn: -axis(0) }
    return wish.x || wish.y || wish.turn ? wish : null
  }
  function send(wish: Wish): void {
    const l = robots.find((g) => g.name === driven)?.locomotion
    if (!l) return
    const speed = l.max_speed * share.valueAsNumber
    const vy = l.type === 'all-wheel' || l.type === 'tripod' ? wish.y * speed : 0
    const vx = wish.x * speed
    const wz = wish.turn * l.max_turn * share.valueAsNumber
    app.drive(driven, vx, vy, wz)
    setText(wanted, `${fixed(vx, 2)}${vy ? ` , ${fixed(vy, 2)}` : ''} m/s`)
    setText(wantedTurn, `${fixed(wz, 2)} rad/s`)
  }
  function beat(): void {
    const wish = visible && ready() ? (stick ?? fromKeys() ?? fromGamepad()) : null
    if (wish && !isActive) driven = robot.value
    if (wish) send(wish)
    else if (isActive) send({ x: 0, y: 0, turn: 0 })
    isActive = wish !== null
    pad.classList.toggle('active', isActive)
    if (!stick) place(wish ?? { x: 0, y: 0, turn: 0 })
  }
  function place(wish: Wish): void {
    knob.style.transform = `translate(${(-wish.turn * 46).toFixed(0)}px, ${(-wish.x * 46).toFixed(0)}px)`
  }
  letGo = () => {
    held.clear()
    stick = null
    pointer = -1
    if (isActive) beat()
  }
  setInterval(beat, PERIOD)

  // ---- stick
  function follow(event: PointerEvent): void {
    const r = pad.getBoundingClientRect()
    const reach = r.width / 2 - 24
    let x = (r.left + r.width / 2 - event.clientX) / reach
    let y = (r.top + r.height / 2 - event.clientY) / reach
    const size = Math.hypot(x, y)
    if (size > 1) {
      x /= size
      y /= size
    }
    stick = { x: y, y: 0, turn: x }
    place(stick)
  }
  pad.addEventListener('pointerdown', (event) => {
    if (!ready() || pointer >= 0) return
    pointer = event.pointerId
    pad.setPointerCapture(pointer)
    follow(event)
    beat()
    event.preventDefault()
  })
  pad.addEventListener('pointermove', (event) => {
    if (event.pointerId === pointer) follow(event)
  })
  for (const end of ['pointerup', 'pointercancel', 'lostpointercapture'] as const) {
    pad.addEventListener(end, (event) => {
      if (event.pointerId === pointer) letGo()
    })
  }

  // ---- keys, only where nobody types
  const codes = new Set(['KeyW', 'KeyA', 'KeyS', 'KeyD', 'KeyQ', 'KeyE', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight'])
  const busy = (target: EventTarget | null) =>
    target instanceof Element && target.closest('input, select, textarea, [contenteditable], [role="tree"], [role="separator"], .menu-box') !== null
  addEventListener('keydown', (event) => {
    if (!visible || !keys.checked || !codes.has(event.code) || event.ctrlKey || event.metaKey || event.altKey || busy(event.target) || !ready())
      return
    event.preventDefault()
    if (event.repeat) return
    held.add(event.code)
    beat()
  })
  addEventListener('keyup', (event) => {
    if (held.delete(event.code)) beat()
  })
  addEventListener('focusin', (event) => {
    if (busy(event.target) && held.size) letGo()
  })
  addEventListener('blur', () => letGo())
  document.addEventListener('visibilitychange', () => document.hidden && letGo())

  // ---- what it does: the speed of its root link, by its places of late
  const past: { t: number; x: number; y: number; yaw: number }[] = []
  app.on('poses', (t) => {
    if (!visible || !app.world) return
    const group = app.world.groups.findIndex((g) => g.name === robot.value)
    const at = group < 0 ? null : pose(app, rootLink(app.world, group))
    if (!at) return
    const [w, x, y, z] = at.q
    if (past.length && t < past[past.length - 1].t) past.length = 0
    past.push({ t, x: at.p[0], y: at.p[1], yaw: Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) })
    while (past.length > 2 && past[1].t < t - MEASURE) past.shift()
    const first = past[0]
    const last = past[past.length - 1]
    const dt = last.t - first.t
    if (dt <= 0) return
    const dx = (last.x - first.x) / dt
    const dy = (last.y - first.y) / dt
    let turn = last.yaw - first.yaw
    turn -= 2 * Math.PI * Math.round(turn / (2 * Math.PI))
    const middle = first.yaw + turn / 2
    setText(measured, `${fixed(dx * Math.cos(middle) + dy * Math.sin(middle), 2)} m/s`)
    setText(measuredTurn, `${fixed(turn / dt, 2)} rad/s`)
  })
  app.on('world', (world) => {
    past.length = 0
    robots = world.groups.filter((g) => g.robot && g.locomotion && g.locomotion.type !== 'none')
    setOptions(
      robot,
      robots.map((g) => g.name),
    )
    robot.hidden = robots.length < 2
    showLimits()
  })
  app.on('hello', () => setTimeout(showLimits))
  app.on('close', () => {
    letGo()
    showLimits()
  })
  app.on('select', (selection) => {
    const w = app.world
    if (!w || !selection || isActive) return
    const group = selection.kind === 'group' ? selection.index : selection.kind === 'link' ? w.links[selection.index]?.group : -1
    if (robots.some((g) => g.name === w.groups[group]?.name)) {
      robot.value = w.groups[group].name
      past.length = 0
      showLimits()
    }
  })
  robot.addEventListener('change', () => {
    letGo()
    past.length = 0
    showLimits()
  })
  share.addEventListener('input', () => {
    remember('drive.share', share.valueAsNumber)
    showLimits()
  })
  keys.addEventListener('change', () => remember('drive.keys', keys.checked))
}

export default {
  id: 'drive',
  title: 'Drive',
  order: 10,
  icon: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 10v-7M10 13l-6 4M14 13l6 4M12 10a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    if (!now) letGo()
  },
} satisfies Panel
