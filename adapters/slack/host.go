package slack

// slackDomains have the Web API, the uploads, and the pages for browsers, of Slack and of
// GovSlack.
var slackDomains = []string{"slack.com", "slack-gov.com"}

// fileHosts serve the files that are shared in Slack.
// https://docs.slack.dev/reference/objects/file-object
var fileHosts = []string{"files.slack.com", "files.slack-gov.com"}

// redirectDomains are the domains to which a file host may redirect a download.
var redirectDomains = []string{"slack.com", "slack-edge.com", "slack-files.com", "slack-gov.com", "slack-files-gov.com"}
