package read

// fileHosts serve the files that are shared in Slack.
// https://docs.slack.dev/reference/objects/file-object
var fileHosts = []string{"files.slack.com", "files.slack-gov.com"}

// redirectDomains are the domains to which a file host may redirect a download.
var redirectDomains = []string{"slack.com", "slack-edge.com", "slack-files.com", "slack-gov.com", "slack-files-gov.com"}
