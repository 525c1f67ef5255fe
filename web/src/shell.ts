// The frame around the 3-D view: a bar at the top, panels in a dock at the right and below, on small screens in a sheet with tabs.
//
//     wide                                   narrow
//     +---------------------------+----+--+  +----------+
//     | bar                       |    |  |  | bar      |
//     +---------------------------+ d  |r |  | viewport |
//     | viewport                  | o  |a |  |          |
//     |                           | c  |i |  +----------+
//     +---------------------------+ k  |l |  | dock     |  one panel, its height drawn by the grip
//     | below: panels that are wide    |  |  +----------+
//     +---------------------------+----+--+  | rail     |
//
// A panel is a file in panels/ with a default export; which are open is remembered. The view never lies under a panel: it gets what is left.
import './style.css'
import type { App, Panel } from './app'
import { createBar } from './bar'
import { h, icon, iconButton, icons, listen, narrow, recall, remember, setPermission } from './ui'

const found = import.meta.glob<{ default: Panel }>('./panels/*.ts', { eager: true })

interface Place {
  panel: Panel
  section: HTMLElement
  body: HTMLElement
  fold: HTMLButtonElement
  tab: HTMLButtonElement
  badge: HTMLElement
  open: boolean
  folded: boolean
  shown: boolean
  absent: boolean // has nothing to show in this world
}

export function createShell(app: App): { viewport: HTMLElement } {
  const viewport = h('main', { class: 'viewport', test: 'viewport', 'aria-label': 'The world' })
  const dock = h('aside', { class: 'dock', test: 'dock', 'aria-label': 'Panels' })
  const below = h('section', { class: 'below', test: 'below', 'aria-label': 'Wide panels' })
  const rail = h('nav', { class: 'rail', test: 'rail', 'aria-label': 'Panels to open' })
  const grip = h('div', { class: 'grip', test: 'dock-grip', role: 'separator', tabindex: 0, 'aria-label': 'Size of the panels' })
  const lower = h('div', { class: 'lower', test: 'below-grip', role: 'separator', tabindex: 0, 'aria-label': 'Height of the wide panels' })
  const toasts = h('div', { class: 'toasts', test: 'toasts', role: 'status', 'aria-live': 'polite' })
  const shell = h('div', { class: 'shell', test: 'shell' }, createBar(app), viewport, lower, below, grip, dock, rail, toasts)
  document.body.append(shell)

  // A press on the view ends typing: keys drive again.
  viewport.addEventListener('pointerdown', () => {
    if (document.activeElement instanceof HTMLElement && document.activeElement !== document.body) document.activeElement.blur()
  })
  watchPermission(app)
  app.on('toast', (toast) => showToast(toasts, toast.text, toast.bad))

  const panels = Object.values(found)
    .map((module) => module.default)
    .sort((a, b) => a.order - b.order)
  const remembered = recall<Record<string, 'open' | 'folded' | 'closed'>>('panels', {})
  const first = new Set(['drive', 'tree'])
  const places = panels.map((panel) => {
    const state = remembered[panel.id] ?? (first.has(panel.id) ? 'open' : 'closed')
    return createPlace(panel, state !== 'closed', state === 'folded')
  })
  let sheet: string | null = recall<string | null>('sheet', null)

  function createPlace(panel: Panel, open: boolean, folded: boolean): Place {
    const body = h('div', { class: 'panel-body' })
    const fold = h(
      'button',
      { type: 'button', class: 'fold plain', test: `fold-${panel.id}`, onclick: () => setFolded(place, !place.folded) },
      icon(icons.chevron, 16),
      h('span', {}, panel.title),
    )
    const close = iconButton(icons.close, `Close ${panel.title}`, `close-${panel.id}`, () => setOpen(place, false))
    const section = h(
      'section',
      { class: 'panel', test: `panel-${panel.id}`, 'aria-label': panel.title },
      h('header', { class: 'panel-head' }, fold, close),
      body,
    )
    const badge = h('span', { class: 'badge', test: `badge-${panel.id}`, hidden: true })
    const tab = h(
      'button',
      { type: 'button', class: 'tab plain', test: `tab-${panel.id}`, title: panel.title, onclick: () => press(place) },
      icon(panel.icon, 22),
      h('span', { class: 'tab-title' }, panel.title),
      badge,
    )
    rail.append(tab)
    panel.create(app, body)
    const place: Place = { panel, section, body, fold, tab, badge, open, folded, shown: false, absent: panel.isHidden === true }
    return place
  }

  // On a narrow screen a tab shows its panel alone, and hides it when pressed again.
  function press(place: Place): void {
    if (narrow.matches) {
      sheet = sheet === place.panel.id ? null : place.panel.id
      remember('sheet', sheet)
      arrange()
    } else {
      setOpen(place, !place.open)
    }
  }
  function setOpen(place: Place, open: boolean): void {
    if (narrow.matches) {
      sheet = open ? place.panel.id : null
      remember('sheet', sheet)
    } else {
      place.open = open
      if (open) place.folded = false
    }
    arrange()
    if (open && !narrow.matches) place.section.scrollIntoView({ block: 'nearest' })
  }
  function setFolded(place: Place, folded: boolean): void {
    place.folded = folded
    arrange()
  }

  // Puts every panel where it belongs and tells those whose sight has changed.
  function arrange(): void {
    const isNarrow = narrow.matches
    let nDock = 0
    let nBelow = 0
    for (const place of places) {
      const open = !place.absent && (isNarrow ? sheet === place.panel.id : place.open)
      place.tab.hidden = place.absent
      const folded = !isNarrow && place.folded
      const home = place.panel.wide && !isNarrow ? below : dock
      if (open && place.section.parentElement !== home) insert(home, place)
      if (!open) place.section.remove()
      if (open) home === below ? nBelow++ : nDock++
      place.section.classList.toggle('folded', folded)
      place.fold.setAttribute('aria-expanded', String(!folded))
      place.tab.setAttribute('aria-pressed', String(open))
      const shown = open && !folded
      if (shown !== place.shown) {
        place.shown = shown
        place.panel.shown?.(app, shown)
      }
    }
    shell.classList.toggle('has-dock', nDock > 0)
    shell.classList.toggle('has-below', nBelow > 0)
    if (!isNarrow) {
      const state = Object.fromEntries(places.map((p) => [p.panel.id, p.open ? (p.folded ? 'folded' : 'open') : 'closed']))
      remember('panels', state)
    }
  }
  function insert(home: HTMLElement, place: Place): void {
    const order = places.indexOf(place)
    const next = places.find((other, i) => i > order && other.section.parentElement === home)
    home.insertBefore(place.section, next?.section ?? null)
  }

  listen('open', (id) => {
    const place = places.find((p) => p.panel.id === id)
    if (place) setOpen(place, true)
  })
  listen('absent', ({ panel, absent }) => {
    const place = places.find((p) => p.panel.id === panel)
    if (!place || place.absent === absent) return
    place.absent = absent
    arrange()
  })
  listen('badge', ({ panel, count }) => {
    const place = places.find((p) => p.panel.id === panel)
    if (!place) return
    place.badge.hidden = count === 0
    place.badge.textContent = count > 99 ? '99+' : String(count)
    place.tab.setAttribute('aria-label', count ? `${place.panel.title}, ${count} new` : place.panel.title)
  })

  drawGrip(shell, grip, lower)
  narrow.addEventListener('change', arrange)
  arrange()
  return { viewport }
}

// A page may command when it is connected and was given control.
function watchPermission(app: App): void {
  setPermission(app, { allowed: false, reason: 'Not connected yet.' })
  app.on('hello', (hello) =>
    setPermission(app, { allowed: hello.control, reason: hello.control ? '' : `You can look, not command: ${hello.reason}` }),
  )
  app.on('close', () => setPermission(app, { allowed: false, reason: 'The connection is lost.' }))
}

// The dock's width (on narrow screens the sheet's height) and the height of what lies below follow a grip.
function drawGrip(shell: HTMLElement, grip: HTMLElement, lower: HTMLElement): void {
  const size = recall('sizes', { dock: 360, sheet: 0.46, below: 290 })
  const apply = () => {
    size.dock = Math.max(260, Math.min(720, innerWidth - 360, size.dock))
    size.sheet = Math.max(0.2, Math.min(0.8, size.sheet))
    size.below = Math.max(140, Math.min(innerHeight - 260, size.below))
    shell.style.setProperty('--dock', `${size.dock}px`)
    shell.style.setProperty('--sheet', `${(size.sheet * 100).toFixed(1)}dvh`)
    shell.style.setProperty('--below', `${size.below}px`)
  }
  const follow = (element: HTMLElement, move: (event: PointerEvent) => void, keys: (sign: number) => void) => {
    element.addEventListener('pointerdown', (event) => {
      element.setPointerCapture(event.pointerId)
      event.preventDefault()
    })
    element.addEventListener('pointermove', (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return
      move(event)
      apply()
    })
    element.addEventListener('pointerup', () => remember('sizes', size))
    element.addEventListener('keydown', (event) => {
      const sign = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1 }[event.key]
      if (!sign) return
      event.preventDefault()
      keys(sign)
      apply()
      remember('sizes', size)
    })
  }
  const railWidth = 48
  const tabs = 60
  follow(
    grip,
    (event) => {
      if (narrow.matches) size.sheet = (innerHeight - tabs - event.clientY) / innerHeight
      else size.dock = innerWidth - railWidth - event.clientX
    },
    (sign) => {
      if (narrow.matches) size.sheet += 0.05 * sign
      else size.dock += 20 * sign
    },
  )
  follow(
    lower,
    (event) => (size.below = innerHeight - event.clientY),
    (sign) => (size.below += 20 * sign),
  )
  addEventListener('resize', apply)
  apply()
}

// Equal toasts are one with a count; bad ones stay longer. A press takes one away.
function showToast(toasts: HTMLElement, text: string, bad: boolean): void {
  const old = [...toasts.children].find((t) => (t as HTMLElement).dataset.text === text) as HTMLElement | undefined
  const count = Number(old?.dataset.count ?? 0) + 1
  old?.remove()
  const toast = h(
    'button',
    { type: 'button', class: bad ? 'toast bad' : 'toast', test: 'toast', 'data-text': text, 'data-count': count, onclick: () => toast.remove() },
    count > 1 ? `${text} (${count} times)` : text,
  )
  toasts.append(toast)
  while (toasts.children.length > 4) toasts.firstElementChild!.remove()
  setTimeout(() => toast.remove(), bad ? 8000 : 3500)
}
