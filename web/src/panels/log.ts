// The log: what the simulator warned of and what failed. The tab counts those that came since one looked.
import './log.css'
import type { App, LogLine, Panel } from '../app'
import { button, clock, h, select, signal } from '../ui'

const ranks = { info: 0, warning: 1, error: 2 }
const most = 500 // lines in the document

let visible = false
let seen = 0
let draw = () => {}
let count = () => {}

function create(app: App, root: HTMLElement): void {
  const level = select(
    'log-level',
    [
      ['0', 'Everything'],
      ['1', 'Warnings and errors'],
      ['2', 'Errors only'],
    ],
    { 'aria-label': 'Level' },
  )
  const filter = h('input', { type: 'search', test: 'log-filter', placeholder: 'Filter', 'aria-label': 'Filter of the log' })
  const list = h('ol', { class: 'log', test: 'log', 'aria-label': 'Log' })
  const empty = h('p', { class: 'hint' }, 'Nothing to report.')
  const copy = button('Copy', 'log-copy', () => {
    const text = chosen().map((line) => `${line.time.toFixed(3)}\t${line.level}\t${line.text}`)
    navigator.clipboard?.writeText(text.join('\n')).then(
      () => app.emit('toast', { text: `${text.length} lines copied`, bad: false }),
      () => app.emit('toast', { text: 'The browser did not allow copying.', bad: true }),
    )
  })
  root.append(h('div', { class: 'line' }, filter, level, copy), empty, list)

  function chosen(): LogLine[] {
    const words = filter.value.toLowerCase()
    return app.log.filter((line) => ranks[line.level] >= Number(level.value) && line.text.toLowerCase().includes(words))
  }
  draw = () => {
    if (!visible) return
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30
    const lines = chosen().slice(-most)
    empty.hidden = lines.length > 0
    list.replaceChildren(
      ...lines.map((line) => h('li', { class: line.level, test: 'log-line' }, h('time', {}, clock(line.time)), h('span', {}, line.text))),
    )
    if (atEnd) list.scrollTop = list.scrollHeight
  }
  count = () => {
    const bad = app.log.filter((line) => line.level !== 'info').length
    if (visible || bad < seen) seen = visible ? bad : 0
    signal('badge', { panel: 'log', count: bad - seen })
  }
  level.addEventListener('change', draw)
  filter.addEventListener('input', draw)
  app.on('log', () => {
    count()
    draw()
  })
}

export default {
  id: 'log',
  title: 'Log',
  order: 90,
  icon: 'M5 4h14v16H5zM8 9h8M8 13h8M8 17h4',
  create,
  shown(_app: App, now: boolean) {
    visible = now
    count()
    draw()
  },
} satisfies Panel
