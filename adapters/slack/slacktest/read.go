package slacktest

import (
	"net/url"
	"slices"
	"strconv"
)

// Page sizes of conversations.history and conversations.replies.
// https://docs.slack.dev/reference/methods/conversations.history
const (
	defaultPage = 100
	maxPage     = 999
)

// history is the channel without its threads' replies, newest first.
func (s *Server) history(form url.Values) []byte {
	posts := s.window(form, func(p Post) bool { return p.ThreadTS == "" || p.ThreadTS == p.TS })
	slices.Reverse(posts)
	return page(form, posts)
}

// replies is one thread, oldest first; its root stands first whatever oldest says.
func (s *Server) replies(form url.Values) []byte {
	root := form.Get("ts")
	posts := s.window(form, func(p Post) bool { return p.ThreadTS == root && p.TS != root })
	c := s.channel(form.Get("channel"))
	c.mu.Lock()
	at, found := slices.BinarySearchFunc(c.posts, root, func(p Post, ts string) int { return compareTS(p.TS, ts) })
	if found {
		posts = append([]Post{c.posts[at]}, posts...)
	}
	c.mu.Unlock()
	if len(posts) == 0 {
		return refusal("thread_not_found")
	}
	return page(form, posts)
}

// window copies the posts between oldest and latest that keep takes, oldest first.
func (s *Server) window(form url.Values, keep func(Post) bool) []Post {
	inclusive := form.Get("inclusive") == "1" || form.Get("inclusive") == "true"
	oldest, latest := form.Get("oldest"), form.Get("latest")
	c := s.channel(form.Get("channel"))
	c.mu.Lock()
	defer c.mu.Unlock()
	from, _ := slices.BinarySearchFunc(c.posts, oldest, func(p Post, ts string) int { return compareTS(p.TS, ts) })
	var posts []Post
	for _, p := range c.posts[from:] {
		if !inclusive && p.TS == oldest {
			continue
		}
		if order := compareTS(p.TS, latest); latest != "" && (order > 0 || order == 0 && !inclusive) {
			break
		}
		if keep(p) {
			posts = append(posts, p)
		}
	}
	return posts
}

// page cuts limit posts out, from the one that the cursor names.
func page(form url.Values, posts []Post) []byte {
	limit, err := strconv.Atoi(form.Get("limit"))
	if err != nil || limit < 1 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	if cursor := form.Get("cursor"); cursor != "" {
		at := slices.IndexFunc(posts, func(p Post) bool { return "next:"+p.TS == cursor })
		if at < 0 {
			return refusal("invalid_cursor")
		}
		posts = posts[at:]
	}
	next := ""
	if len(posts) > limit {
		next = "next:" + posts[limit].TS
		posts = posts[:limit]
	}
	metadata := form.Get("include_all_metadata") == "1" || form.Get("include_all_metadata") == "true"
	answer := []byte(`{"ok":true,"messages":[`)
	for i, p := range posts {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = p.appendJSON(answer, metadata)
	}
	answer = append(answer, `],"has_more":`+strconv.FormatBool(next != "")...)
	return append(answer, `,"response_metadata":{"next_cursor":"`+next+`"}}`...)
}

// compareTS orders timestamps as numbers: seconds of any length, six digits
// after the point. The empty text comes first.
func compareTS(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
