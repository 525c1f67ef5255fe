// Time: pausing, single steps, pace, going back to the start, and states kept under a name.
import type { App, Panel, Status } from '../app'
import { clock, button, commands, h, icon, iconButton, icons, row, setText, show, tell } from '../ui'

// The slider is logarithmic: -1 is a tenth of real time, 1 is ten times.
const pace = (position: number) => Number((10 ** position).toPrecision(2))

function create(app: App, root: HTMLElement): void {
  const toggle = h('button', {
    type: 'button',
    class: 'main',
    test: 'pause',
    onclick: () => tell(app, app.status?.paused ? 'resume' : 'pause'),
  })
  const step = (n: number) =>
    button(`+${n}`, `step-${n}`, () => tell(app, `step ${n}`), { title: `While paused: ${n} ${n === 1 ? 'tick' : 'ticks'}` })
  const steps = [1, 10, 100].map(step)

  const slider = h('input', { type: 'range', min: -1, max: 1, step: 0.01, value: 0, test: 'rate-slider', 'aria-label': 'Pace, times real time' })
  const rate = h('output', { class: 'digits', test: 'rate', style: 'min-width: 52px; text-align: right' }, '1x')
  slider.addEventListener('input', () => setText(rate, `${pace(slider.valueAsNumber)}x`))
  slider.addEventListener('change', () => tell(app, `rate ${pace(slider.valueAsNumber)}`))
  const real = button('Real time', 'rate-real', () => tell(app, 'rate real'))
  const max = button('As fast as possible', 'rate-max', () => tell(app, 'rate max'))

  const name = h('input', { test: 'snapshot-name', placeholder: 'name', 'aria-label': 'Name of the snapshot', maxlength: 60 })
  const list = h('ul', { class: 'list', test: 'snapshots' })
  const save = () => {
    const used = new Set(app.status?.snapshots.map((s) => s.name))
    let n = 1
    while (used.has(`state${n}`)) n++
    const chosen = name.value.trim().replace(/\s+/g, '-') || `state${n}`
    tell(app, `snapshot ${chosen}`, () => (name.value = ''))
  }
  name.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') save()
  })

  const facts = h('dl', { class: 'facts' })
  const time = row(facts, 'Simulated time', '–', 'time-value')
  const tick = row(facts, 'Tick', '–', 'tick')
  const actual = row(facts, 'Pace', '–', 'actual')
  const energy = row(facts, 'Energy', '–', 'energy')
  const cost = row(facts, 'Step takes', '–', 'step-time')
  const missed = row(facts, 'Missed deadlines', '–', 'missed-count')
  const dropped = row(facts, 'Frames left out', '–', 'dropped-count')
  const clients = row(facts, 'Clients', '–', 'clients')

  root.append(
    commands(
      h('div', { class: 'line steps' }, toggle, ...steps, h('span', { class: 'grow' }), resetButton(app)),
      h('div', { class: 'line', style: 'flex-wrap: nowrap' }, slider, rate),
      h('div', { class: 'line' }, real, max),
    ),
    facts,
    h('h3', {}, 'Snapshots'),
    commands(h('div', { class: 'line' }, name, button('Save', 'snapshot-save', save)), list),
  )

  let shownNames = ''
  app.on('status', (s: Status) => {
    const label = s.paused ? 'Resume' : 'Pause'
    if (toggle.textContent !== label) toggle.replaceChildren(h('span', { class: 'line' }, icon(s.paused ? icons.play : icons.pause, 16), label))
    for (const one of steps) one.disabled = !s.paused
    real.setAttribute('aria-pressed', String(s.rate === 1))
    max.setAttribute('aria-pressed', String(s.rate === 0))
    if (document.activeElement !== slider || !slider.matches(':active')) {
      if (s.rate > 0) slider.value = String(Math.log10(s.rate))
      setText(rate, s.rate > 0 ? `${show(s.rate, 2)}x` : 'max')
    }
    setText(time, clock(s.time))
    setText(tick, s.tick.toLocaleString('en').replaceAll(',', ' '))
    setText(actual, s.paused ? 'paused' : `${s.actual.toFixed(2)}x`)
    setText(energy, `${show(s.energy)} J`)
    setText(cost, `${show(s.step_us, 3)} µs`)
    setText(missed, s.missed ? `${s.missed}, worst ${show(s.worst_late_ms, 3)} ms` : '0')
    setText(dropped, s.dropped ? `${s.dropped}, of lidars` : '0')
    setText(clients, String(s.clients))

    const names = JSON.stringify(s.snapshots)
    if (names === shownNames) return
    shownNames = names
    list.replaceChildren(
      ...s.snapshots.map((one) =>
        h(
          'li',
          { test: `snapshot-${one.name}` },
          h('span', { class: 'name' }, one.name, h('small', {}, clock(one.time))),
          button('Restore', `restore-${one.name}`, () => tell(app, `restore ${one.name}`)),
          iconButton(icons.bin, `Delete ${one.name}`, `forget-${one.name}`, () => tell(app, `forget ${one.name}`)),
        ),
      ),
    )
  })
}

// A reset undoes every edit: it wants a second press.
function resetButton(app: App): HTMLButtonElement {
  let armed = 0
  const disarm = () => {
    window.clearTimeout(armed)
    armed = 0
    reset.textContent = 'Reset'
    reset.classList.remove('danger')
  }
  const reset = button(
    'Reset',
    'reset',
    () => {
      if (armed) {
        disarm()
        tell(app, 'reset')
        return
      }
      reset.textContent = 'Really?'
      reset.classList.add('danger')
      armed = window.setTimeout(disarm, 3000)
    },
    { title: 'Back to the scene as it was loaded; all edits are undone' },
  )
  return reset
}

export default { id: 'time', title: 'Time', order: 40, icon: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 3', create } satisfies Panel
