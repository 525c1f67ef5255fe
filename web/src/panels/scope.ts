// The scope: values over time, in one or several plots.
//
// All values share one ring of times, so a plot is a slice of it; what did not exist yet is NaN. New values come from the tree ("+", or dragged)
// or are typed. The newest stretch is shown until somebody zooms; the rings go on filling while it is paused.
import './scope/scope.css'
import type { App, Panel, World } from '../app'
import { button, download, h, iconButton, icons, listen, narrow, recall, remember, select, setText, signal, throttle, valueNames } from '../ui'
import { Plot } from './scope/plot'
import { Rings } from './scope/rings'

const windows: [string, string][] = [
  ['2', '2 s'],
  ['5', '5 s'],
  ['10', '10 s'],
  ['30', '30 s'],
  ['60', '1 min'],
  ['300', '5 min'],
  ['0', 'All'],
]

let visible = false
let look = () => {}

function create(app: App, root: HTMLElement): void {
  const rings = new Rings()
  const plots: Plot[] = []
  let target: Plot | null = null // where the next value goes
  let isPaused = false
  let names: string[] = []
  let known = new Set<string>()

  const typed = h('input', {
    test: 'scope-add',
    list: 'scope-names',
    placeholder: 'Value, for example energy',
    'aria-label': 'Value to plot',
    autocomplete: 'off',
    style: 'max-width: 320px',
  })
  const options = h('datalist', { id: 'scope-names' })
  const length = select('scope-window', windows, { 'aria-label': 'Window', style: 'flex: 0 0 84px' })
  length.value = recall('scope.window', '10')
  const pause = button('Pause', 'scope-pause', () => setPaused(!isPaused), { 'aria-pressed': 'false' })
  const live = button('Live', 'scope-live', () => plots.forEach((p) => p.release()), {
    title: 'Back to the newest values; so does a double click on a plot',
    hidden: true,
  })
  const area = h('div', { class: 'scope', test: 'scope' })
  root.append(
    h(
      'div',
      { class: 'line scope-line' },
      typed,
      options,
      length,
      pause,
      live,
      iconButton(icons.plus, 'New plot', 'scope-new', () => setTarget(addPlot())),
      h('span', { class: 'grow' }),
      iconButton(icons.save, 'Export as CSV', 'scope-csv', () => download('scope.csv', new Blob([rings.csv()], { type: 'text/csv' }))),
      iconButton(icons.picture, 'Export as PNG', 'scope-png', () =>
        plots.forEach((p) => p.values.length && p.png((blob) => download('scope.png', blob))),
      ),
      iconButton(icons.bin, 'Remove all', 'scope-clear', () => clear()),
    ),
    area,
  )

  // ---- plots and values
  function addPlot(values: string[] = []): Plot {
    const plot = new Plot(rings, {
      changed: () => save(),
      chosen: () => setTarget(plot),
      closed: () => {
        plots.splice(plots.indexOf(plot), 1)
        plot.element.remove()
        if (target === plot) setTarget(plots[0] ?? addPlot())
        save()
      },
      dropped: (list) => add(list, plot),
      held: () => (live.hidden = !plots.some((p) => p.isHeld)),
    })
    plots.push(plot)
    area.append(plot.element)
    for (const name of values) plot.add(name)
    return plot
  }
  function setTarget(plot: Plot): void {
    target = plot
    for (const one of plots) one.element.classList.toggle('target', one === plot && plots.length > 1)
  }
  function add(list: string[], plot = target ?? addPlot()): void {
    for (const name of list) plot.add(name)
  }
  function save(): void {
    names = [...new Set(plots.flatMap((p) => p.values))]
    rings.keep(names)
    app.watch('scope', names)
    remember(
      'scope.plots',
      plots.map((p) => p.values),
    )
    draw()
  }
  function clear(): void {
    while (plots.length) plots.pop()!.element.remove()
    setTarget(addPlot())
    save()
  }
  function setPaused(now: boolean): void {
    isPaused = now
    setText(pause, now ? 'Resume' : 'Pause')
    pause.setAttribute('aria-pressed', String(now))
    draw()
  }

  // ---- typing, with what fits
  function complete(): void {
    const words = typed.value.trim().toLowerCase().split(/\s+/)
    const fits: string[] = []
    for (const name of known) {
      if (words.every((w) => name.toLowerCase().includes(w))) fits.push(name)
      if (fits.length === 30) break
    }
    options.replaceChildren(...fits.map((value) => h('option', { value })))
  }
  typed.addEventListener('input', (event) => {
    // A name taken from the list comes as one replacement.
    if ((event as InputEvent).inputType === 'insertReplacementText' && known.has(typed.value)) enter()
    else complete()
  })
  typed.addEventListener('focus', complete)
  typed.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') enter()
  })
  function enter(): void {
    const wanted = typed.value.trim()
    if (!wanted) return
    if (!known.has(wanted)) {
      app.emit('toast', { text: `There is no value “${wanted}”. Names are like link.x, joint.q, joint.v, drive.torque or energy.`, bad: true })
      return
    }
    typed.value = ''
    add([wanted])
  }

  // ---- drawing, at most 20 times a second
  const draw = throttle(50, () => {
    if (!visible) return
    const seconds = Number(length.value)
    for (const plot of plots) plot.draw(seconds, isPaused)
  })
  length.addEventListener('change', () => {
    remember('scope.window', length.value)
    for (const plot of plots) plot.release()
    draw()
  })
  app.on('values', ({ time }) => {
    if (!names.length) return
    rings.push(time, (name) => app.value(name))
    draw()
  })
  app.on('world', (world: World) => {
    known = new Set(valueNames(world, app.soils.length > 0))
    if (!plots.length) {
      const remembered = recall<string[][]>('scope.plots', []).map((list) => list.filter((n) => known.has(n)))
      for (const list of remembered.filter((l) => l.length)) addPlot(list)
      setTarget(plots[0] ?? addPlot())
    }
    save()
  })
  app.on('pairs', () => {
    if (app.world) known = new Set(valueNames(app.world, app.soils.length > 0))
  })
  listen('plot', (list) => {
    if (!plots.length) setTarget(addPlot())
    add(list)
    // A small screen shows one panel: the one where the next value is picked stays.
    if (narrow.matches) app.emit('toast', { text: `On the scope: ${list.join(', ')}`, bad: false })
    else signal('open', 'scope')
  })
  matchMedia('(prefers-color-scheme: light)').addEventListener('change', () => plots.forEach((p) => p.rebuild()))
  look = draw
}

export default {
  id: 'scope',
  title: 'Scope',
  order: 35,
  icon: 'M3 3v18h18M6 15l4-6 4 4 6-8',
  wide: true,
  create,
  shown(_app: App, now: boolean) {
    visible = now
    look()
  },
} satisfies Panel
