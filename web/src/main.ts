// The page begins here: the app and its connection, the 3-D view, the frame with the panels.
import { PageApp } from './state'
import { WorldView } from './view/view'
import { createShell } from './shell'
import { createNotice } from './notice'

const app = new PageApp()
app.start() // what comes is only heard when all the rest is there
const view = new WorldView(app)
app.view = view
app.picture = (time) => view.take(time)
// What is drawn in software is work for the processor that simulates: fewer pictures, and texts that change less often.
if (view.isWeak) Object.assign(app, { hz: 20, calm: 250 })
const { viewport } = createShell(app)
view.attach(viewport)
createNotice(app, viewport, view.hasGraphics)

// For tests, and for those who like to look inside.
Object.assign(window, { understudy: { app } })
