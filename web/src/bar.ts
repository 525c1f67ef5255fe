// The bar at the top: what runs, how far it is and how well it keeps up; pausing; the menus of camera and layers.
import type { App } from './app'
import { clock, h, icon, icons, iconButton, listen, permission, rootLink, select, setOptions, setText, tell } from './ui'

export function createBar(app: App): HTMLElement {
  const name = h('span', { class: 'scene', test: 'scene-name' }, 'Understudy')
  const time = h('span', { class: 'digits', test: 'sim-time', title: 'Simulated time' }, '–')
  const pace = h('span', { class: 'digits dim', test: 'pace', title: 'Simulated seconds per second' })
  const paused = h('span', { class: 'tag warn', test: 'paused-badge', hidden: true }, 'paused')
  const missed = h('span', { class: 'tag calm', test: 'missed', hidden: true })
  const record = h('span', { class: 'tag bad rec', test: 'record-dot', hidden: true }, 'rec')
  const fps = h('span', { class: 'digits dim fps', test: 'fps', title: 'Frames drawn per second' })
  const link = h('span', { class: 'link', test: 'connection', role: 'status' }, 'connecting')
  const pause = h(
    'button',
    { type: 'button', class: 'plain', test: 'bar-pause', disabled: true, onclick: () => tell(app, app.status?.paused ? 'resume' : 'pause') },
    icon(icons.pause),
  )
  let drawn: boolean | null = null
  let lastMissed = Infinity
  let missedAt = -Infinity

  function showStatus(): void {
    const s = app.status
    if (!s) return
    setText(time, clock(app.time))
    setText(pace, s.paused ? '' : `${s.actual.toFixed(2)}x`)
    pace.classList.toggle('slow', !s.paused && s.rate > 0 && s.actual < 0.95 * s.rate)
    paused.hidden = !s.paused
    missed.hidden = s.missed === 0
    setText(missed, `${count(s.missed)} late`)
    // It stands out while more are missed, and calms down when that is over.
    const now = performance.now()
    if (s.missed > lastMissed) missedAt = now
    lastMissed = s.missed
    missed.classList.toggle('bad', now - missedAt < 3000)
    missed.title = `Missed deadlines: ${s.missed}. The worst was ${s.worst_late_ms.toFixed(1)} ms late.`
    record.hidden = !s.recording
    record.title = s.recording?.file ?? ''
    setText(fps, app.view.fps > 0 ? `${Math.round(app.view.fps)} fps` : '')
    if (drawn !== s.paused) {
      drawn = s.paused
      pause.replaceChildren(icon(s.paused ? icons.play : icons.pause))
      pause.title = s.paused ? 'Resume' : 'Pause'
      pause.setAttribute('aria-label', pause.title)
    }
  }
  const showLink = (state: 'on' | 'look' | 'off', text: string, title: string) => {
    link.className = `link ${state}`
    setText(link, text)
    link.title = title
  }
  app.on('status', showStatus)
  app.on('poses', () => setText(time, clock(app.time)))
  app.on('world', (world) => {
    setText(name, world.name || 'unnamed scene')
    name.title = world.file ?? ''
    document.title = `${world.name || 'scene'} – Understudy`
  })
  app.on('hello', (hello) =>
    showLink(hello.control ? 'on' : 'look', hello.control ? 'live' : 'looking', hello.reason || `Understudy ${hello.version}`),
  )
  app.on('close', (reason) => showLink('off', 'lost', reason))
  listen('permission', (now) => {
    pause.disabled = !now.allowed
    if (!now.allowed) pause.title = now.reason
    else drawn = null
  })
  if (!permission(app).allowed) pause.title = permission(app).reason

  return h(
    'header',
    { class: 'bar', test: 'bar' },
    h('div', { class: 'bar-part' }, name),
    h('div', { class: 'bar-part middle' }, pause, time, pace, paused, missed, record),
    h('div', { class: 'bar-part' }, fps, createCameraMenu(app), createLayersMenu(app), link),
  )
}

function count(n: number): string {
  if (n < 10000) return String(n)
  return n < 1e6 ? `${Math.floor(n / 1000)}k` : `${(n / 1e6).toFixed(1)}M`
}

// A button with a box that opens below it; Escape or a press elsewhere closes it.
function createMenu(label: string, path: string, test: string, opened: (box: HTMLElement) => void): HTMLElement {
  const box = h('div', { class: 'menu-box', test: `${test}-box`, role: 'group', 'aria-label': label, hidden: true })
  const press = iconButton(path, label, test, () => setOpen(box.hidden !== false), { 'aria-expanded': 'false', 'aria-haspopup': 'true' })
  const menu = h('div', { class: 'menu' }, press, box)
  function setOpen(open: boolean): void {
    if (open) opened(box)
    box.hidden = !open
    press.setAttribute('aria-expanded', String(open))
  }
  addEventListener('pointerdown', (event) => {
    if (!box.hidden && !menu.contains(event.target as Node)) setOpen(false)
  })
  menu.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || box.hidden) return
    setOpen(false)
    press.focus()
  })
  return menu
}

function createCameraMenu(app: App): HTMLElement {
  const modes = [
    ['orbit', 'Orbit', 'turns about a place'],
    ['follow', 'Follow', 'goes along with a robot'],
    ['onboard', 'On board', 'looks out of a robot'],
  ] as const
  const body = select('camera-body', [], { 'aria-label': 'Robot or link for the camera', onchange: () => set(app.view.cameraMode) })
  const set = (mode: 'orbit' | 'follow' | 'onboard') => app.view.setCamera(mode, body.value === '' ? undefined : Number(body.value))
  return createMenu('Camera', icons.camera, 'camera-menu', (box) => {
    const world = app.world
    const robots = (world?.groups ?? []).flatMap((group, i) => {
      const root = world ? rootLink(world, i) : -1
      return group.robot && root >= 0 ? [[String(root), group.name] as [string, string]] : []
    })
    const picked = app.selection?.kind === 'link' ? app.selection.index : -1
    if (picked >= 0 && world?.links[picked] && !robots.some(([v]) => Number(v) === picked)) robots.push([String(picked), world.links[picked].name])
    setOptions(body, robots.length ? robots : [['', 'no robot: select a link']])
    box.replaceChildren(
      ...modes.map(([mode, title, what]) =>
        h(
          'label',
          { class: 'choice' },
          h('input', {
            type: 'radio',
            name: 'camera',
            test: `camera-${mode}`,
            checked: app.view.cameraMode === mode,
            disabled: mode !== 'orbit' && !robots.length,
            onchange: () => set(mode),
          }),
          h('span', {}, title, h('small', {}, what)),
        ),
      ),
      h('label', { class: 'stack' }, h('small', {}, 'Robot or selected link'), body),
      h('small', { class: 'dim' }, 'Double click on something to look at it.'),
    )
  })
}

function createLayersMenu(app: App): HTMLElement {
  return createMenu('Layers', icons.layers, 'layers-menu', (box) => {
    box.replaceChildren(
      ...app.view.layers().map((layer) =>
        h(
          'label',
          { class: 'choice' },
          h('input', {
            type: 'checkbox',
            role: 'switch',
            class: 'switch',
            test: `layer-${layer.id}`,
            checked: layer.on,
            onchange: (event: Event) => app.view.setLayer(layer.id, (event.target as HTMLInputElement).checked),
          }),
          h('span', {}, layer.title),
        ),
      ),
    )
  })
}
