package slack

// slackDomain has the Web API, the uploads, and the pages for browsers.
const slackDomain = "slack.com"

// filesHost serves the files that are shared in Slack.
// https://docs.slack.dev/reference/objects/file-object
const filesHost = "files.slack.com"

// redirectDomains are the domains to which filesHost may redirect a download.
var redirectDomains = []string{slackDomain, "slack-edge.com", "slack-files.com"}
