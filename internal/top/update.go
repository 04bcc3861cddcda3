package top

import (
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case SampleMsg:
		m.add(msg.Sample)
	case TroubleMsg:
		m.trouble = msg.Err.Error()
	case NoticeMsg:
		m.notice = msg.Text
	case tea.PasteMsg:
		if m.typing {
			m.typeText(msg.Content)
		}
	case tea.KeyPressMsg:
		cmd = m.press(msg)
	}
	m.place()
	return m, cmd
}

// View implements tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView(Render(m, m.width, m.height))
	v.AltScreen = true
	return v
}

// press does what a key asks for.
func (m *Model) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case m.typing:
		m.typeKey(key, msg.Text)
		return nil
	case m.screen == screenHelp:
		m.screen = m.back // any key
		return nil
	}
	switch key {
	case "q":
		if m.screen == screenDetail {
			m.screen = screenTable
			return nil
		}
		return tea.Quit
	case "?", "h", "f1":
		m.screen, m.back = screenHelp, m.screen
	case "esc", "backspace":
		if m.screen == screenDetail {
			m.screen = screenTable
		} else {
			m.filter = ""
		}
	case "w":
		m.fast = !m.fast
	case "space", "p":
		m.pause()
	case "enter":
		m.detail()
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	default:
		if m.screen == screenTable {
			m.pressTable(key)
		}
	}
	return nil
}

// pressTable does what a key asks for that only the table has.
func (m *Model) pressTable(key string) {
	switch key {
	case "/":
		m.typing = true
	case "f":
		m.freeze()
	case "pgup", "ctrl+b":
		m.move(-m.visibleRows())
	case "pgdown", "ctrl+f":
		m.move(m.visibleRows())
	case "home", "g":
		m.move(-len(m.rows()))
	case "end", "G":
		m.move(len(m.rows()))
	case "s", "right", ">":
		m.sortNext(1)
	case "S", "left", "<":
		m.sortNext(-1)
	case "r":
		m.reversed = !m.reversed
		m.refreeze()
	default:
		for i := range columns {
			if columns[i].key == key && key != "" {
				m.sortBy(i)
			}
		}
	}
}

// sortBy sorts by a column, the other way round when it is the one already.
func (m *Model) sortBy(i int) {
	m.reversed = i == m.sort && !m.reversed
	m.sort = i
	m.refreeze()
}

// sortNext sorts by the next column, or the one before, that can be.
func (m *Model) sortNext(by int) {
	i := m.sort
	for {
		i = (i + by + len(columns)) % len(columns)
		if columns[i].key != "" {
			break
		}
	}
	m.sort, m.reversed = i, false
	m.refreeze()
}

// freeze keeps the rows in their order, or lets them go.
func (m *Model) freeze() {
	if m.order != nil {
		m.order = nil
		return
	}
	m.order = map[keyID]int{}
	for i, k := range m.rows() {
		m.order[idOf(k)] = i
	}
}

// refreeze freezes the order that was asked for just now.
func (m *Model) refreeze() {
	if m.order != nil {
		m.order = nil
		m.freeze()
	}
}

// pause stops the view, or lets it go on with what is now.
func (m *Model) pause() {
	if m.paused = !m.paused; !m.paused {
		m.shown = m.latest
	}
}

// detail shows everything about the key under the cursor.
func (m *Model) detail() {
	if rows := m.rows(); len(rows) > 0 && m.screen == screenTable {
		m.screen = screenDetail
		m.selected, m.moved = idOf(rows[min(m.cursor, len(rows)-1)]), true
	}
}

// typeKey edits the filter.
func (m *Model) typeKey(key, text string) {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	case "ctrl+u":
		m.filter = ""
	default:
		m.typeText(text)
	}
}

// typeText adds what can be seen of a text to the filter.
func (m *Model) typeText(text string) {
	for _, r := range text {
		if unicode.IsPrint(r) && utf8.RuneCountInString(m.filter) < maxFilter {
			m.filter += string(r)
		}
	}
	m.filter = strings.ToValidUTF8(m.filter, "")
}
