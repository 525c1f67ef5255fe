// The network: topics with their type and measured rate, and what became of the commands to each robot.
import './network.css'
import type { App, Panel, TopicRow } from '../app'
import { h, iconButton, icons, setText } from '../ui'

let visible = false

interface Line {
  row: HTMLTableRowElement
  hz: HTMLElement
  count: HTMLElement
}

function create(app: App, root: HTMLElement): void {
  const filter = h('input', { type: 'search', test: 'topic-filter', placeholder: 'Filter by name or type', 'aria-label': 'Filter of topics' })
  const body = h('tbody')
  const total = h('small', { class: 'dim', test: 'topic-total' })
  const robots = h('tbody')
  const robotTable = h(
    'table',
    { test: 'robot-commands' },
    h('thead', {}, h('tr', {}, h('th', {}, 'Robot'), h('th', { class: 'digits' }, 'commands'), h('th', { class: 'digits' }, 'refused'))),
    robots,
  )
  const lines = new Map<string, Line>()
  let topics: TopicRow[] = []

  const copy = (name: string) =>
    navigator.clipboard?.writeText(name).then(
      () => app.emit('toast', { text: `Copied ${name}`, bad: false }),
      () => app.emit('toast', { text: 'The browser did not allow copying.', bad: true }),
    )
  function line(topic: TopicRow): Line {
    const hz = h('td', { class: 'digits' })
    const count = h('td', { class: 'digits' })
    const direction = topic.out ? 'The robot sends it' : 'The robot takes it'
    const name = h('td', {}, topic.name, h('small', {}, topic.type))
    const arrow = h('td', { title: direction, 'aria-label': direction }, topic.out ? '→' : '←')
    const row = h('tr', { test: `topic-${topic.name}` }, arrow, name, hz, count)
    row.append(
      h(
        'td',
        {},
        iconButton(icons.copy, `Copy ${topic.name}`, `copy-${topic.name}`, () => copy(topic.name)),
      ),
    )
    return { row, hz, count }
  }
  function draw(): void {
    if (!visible) return
    const words = filter.value.toLowerCase()
    const shown = topics.filter((t) => t.name.toLowerCase().includes(words) || t.type.toLowerCase().includes(words))
    const rows = shown.slice(0, 300).map((topic) => {
      // A robot may take one topic in two types.
      const key = `${topic.name} ${topic.type}`
      let one = lines.get(key)
      if (!one) lines.set(key, (one = line(topic)))
      setText(one.hz, topic.hz > 0 ? topic.hz.toFixed(topic.hz < 10 ? 1 : 0) : '–')
      setText(one.count, String(topic.count))
      return one.row
    })
    if (rows.length !== body.children.length || rows.some((row, i) => body.children[i] !== row)) body.replaceChildren(...rows)
    setText(total, topics.length ? `${shown.length} of ${topics.length} topics` : 'No topics yet. Robots have topics unless the run is offline.')
  }
  filter.addEventListener('input', draw)
  app.on('topics', (now) => {
    topics = [...now].sort((a, b) => (a.name < b.name ? -1 : 1))
    draw()
  })
  let last = ''
  app.on('status', (status) => {
    const text = JSON.stringify(status.robots)
    if (!visible || text === last) return
    last = text
    robotTable.hidden = status.robots.length === 0
    robots.replaceChildren(
      ...status.robots.map((robot) =>
        h(
          'tr',
          { test: `robot-${robot.name}` },
          h('td', {}, robot.name, robot.refusal ? h('small', { class: 'slow' }, `last refusal: ${robot.refusal}`) : null),
          h('td', { class: 'digits' }, String(robot.commands)),
          h('td', { class: 'digits' }, String(robot.refused)),
        ),
      ),
    )
  })
  const head = h(
    'thead',
    {},
    h('tr', {}, h('th'), h('th', {}, 'Topic'), h('th', { class: 'digits' }, 'Hz'), h('th', { class: 'digits' }, 'count'), h('th')),
  )
  root.append(robotTable, filter, h('div', { class: 'scroll' }, h('table', { test: 'topics' }, head, body)), total)
}

export default {
  id: 'network',
  title: 'Network',
  order: 70,
  icon: 'M12 3v5M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM9 15l-4 5M15 15l4 5',
  create,
  shown(app: App, now: boolean) {
    if (now === visible) return
    visible = now
    app.need('topics', now)
  },
} satisfies Panel
