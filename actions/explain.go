package actions

// Explain says how a command on c ended: the kind, the error's text without the
// passwords of c, and what to look at, empty where the text says it all. The
// text may hold what a server sent; whoever prints it escapes it.
func (c *Client) Explain(err error) (res Result, text, hint string) {
	res = classify(err)
	if err != nil {
		text = c.redact.clean(err.Error())
	}
	return res, text, res.hint()
}
