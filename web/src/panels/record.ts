// Recording: a file with everything that happens, in the directory of the run.
import type { App, Panel } from '../app'
import { button, bytes, commands, h, row, setText, tell } from '../ui'

function proposal(scene: string): string {
  const now = new Date()
  const two = (n: number) => String(n).padStart(2, '0')
  const day = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`
  const safe = scene.replace(/[^A-Za-z0-9_-]+/g, '-') || 'run'
  return `${safe}-${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`
}

function create(app: App, root: HTMLElement): void {
  const name = h('input', { test: 'record-name', 'aria-label': 'Name of the recording', placeholder: 'a name with the date', maxlength: 120 })
  const start = button('Start recording', 'record-start', begin, { class: 'main' })
  const stop = button('Stop', 'record-stop', () => tell(app, 'record off'))
  const facts = h('dl', { class: 'facts' })
  const file = row(facts, 'File', '–', 'record-file')
  const messages = row(facts, 'Messages', '–', 'record-messages')
  const size = row(facts, 'Size', '–', 'record-size')
  const state = h('p', { class: 'hint', test: 'record-state' }, 'Nothing is recorded.')

  function begin(): void {
    const typed = name.value.trim() || proposal(app.world?.name ?? '')
    tell(app, `record ${typed.endsWith('.mcap') ? typed : `${typed}.mcap`}`, () => (name.value = ''))
  }
  root.append(
    state,
    facts,
    commands(h('div', { class: 'line' }, name), h('div', { class: 'line' }, start, stop)),
    h('small', { class: 'dim' }, 'Written as MCAP where the program runs. Foxglove opens it, and “understudy replay --verify” runs it again.'),
  )
  facts.hidden = true
  stop.disabled = true
  app.on('status', ({ recording }) => {
    start.disabled = recording !== null
    stop.disabled = recording === null
    facts.hidden = recording === null
    state.hidden = recording !== null
    if (!recording) return
    setText(file, recording.file)
    setText(messages, String(recording.messages))
    setText(size, bytes(recording.bytes))
  })
}

export default {
  id: 'record',
  title: 'Record',
  order: 80,
  icon: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z',
  create,
} satisfies Panel
