// Who plays the robot: what its switch tells, and buttons that ask it for another mode.
import type { App, Panel } from '../app'
import { button, commands, h, row, setText, tell } from '../ui'

interface Line {
  robot: string
  mode: string
  control: string
  epoch: number
  since: number
  reason: string
  hardware: boolean
  proxy: boolean
  refused: string
}

const modes: [string, string][] = [
  ['hardware', 'The hardware plays'],
  ['proxy', 'The proxy plays'],
  ['mirror', 'Who is in control goes on; the other publishes under /understudy/mirror'],
  ['shadow', 'The hardware plays; the proxy gets copies of its commands'],
  ['stop', 'Nobody gets commands, and both stand still'],
]

// Null for what is no such line: it came over the network.
function read(text: string): Line | null {
  try {
    const line = JSON.parse(text) as Line
    return typeof line.robot === 'string' && typeof line.mode === 'string' ? line : null
  } catch {
    return null
  }
}

class Stand {
  readonly root: HTMLElement
  private readonly cells: Record<string, HTMLElement> = {}
  private readonly buttons: HTMLButtonElement[]
  constructor(app: App, robot: string) {
    const facts = h('dl', { class: 'facts' })
    for (const [key, what] of [
      ['mode', 'Mode'],
      ['control', 'In control'],
      ['alive', 'Heard'],
      ['since', 'Since'],
      ['reason', 'Because'],
      ['refused', 'Refused'],
      ['epoch', 'Epoch'],
    ])
      this.cells[key] = row(facts, what, '–', `authority-${robot}-${key}`)
    this.buttons = modes.map(([mode, what]) =>
      button(mode, `authority-${robot}-to-${mode}`, () => tell(app, `authority ${robot} ${mode}`), { title: what }),
    )
    const line = h('div', { class: 'line' }, ...this.buttons)
    this.root = h('section', { class: 'commands', test: `authority-${robot}` }, h('h3', {}, robot), facts, line)
  }
  show(line: Line): void {
    const alive = [line.hardware && 'hardware', line.proxy && 'proxy'].filter(Boolean)
    setText(this.cells.mode, line.mode)
    setText(this.cells.control, line.control)
    setText(this.cells.alive, alive.length ? alive.join(', ') : 'nobody')
    setText(this.cells.since, new Date(1000 * Number(line.since)).toLocaleTimeString())
    setText(this.cells.reason, line.reason || '–')
    setText(this.cells.refused, line.refused || '–')
    setText(this.cells.epoch, String(line.epoch))
    this.buttons.forEach((one, i) => one.setAttribute('aria-pressed', String(modes[i][0] === line.mode)))
  }
}

function create(app: App, root: HTMLElement): void {
  const none = h(
    'p',
    { class: 'hint', test: 'authority-none' },
    'No switch is in this domain. “understudy switch ROBOT” puts hardware and proxy behind one set of topics.',
  )
  const stands = new Map<string, Stand>()
  const list = commands()
  root.append(none, list)
  app.on('status', ({ authority }) => {
    const lines = (authority ?? []).map(read).filter((line) => line !== null)
    none.hidden = lines.length > 0
    list.hidden = !none.hidden
    for (const [robot, stand] of stands) stand.root.hidden = !lines.some((line) => line.robot === robot)
    for (const line of lines) {
      let stand = stands.get(line.robot)
      if (!stand) {
        stands.set(line.robot, (stand = new Stand(app, line.robot)))
        list.append(stand.root)
      }
      stand.show(line)
    }
  })
}

export default {
  id: 'authority',
  title: 'Authority',
  order: 75,
  icon: 'M4 8h13l-3-3M20 16H7l3 3',
  create,
} satisfies Panel
