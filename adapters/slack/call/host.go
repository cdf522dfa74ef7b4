package call

// SlackDomains have the Web API, the uploads, and the pages for browsers, of Slack and of
// GovSlack.
var SlackDomains = []string{"slack.com", "slack-gov.com"}
